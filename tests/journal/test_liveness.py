import os
from pathlib import Path
from typing import Any

import pytest

from rheostat.journal.liveness import State, judge_liveness
from rheostat.journal.store import Journal
from rheostat.model.observation import Event
from tests.journal.samples import turns, write, write_pending

NOW = 1_800_000_000.0
NO_PROCESS = 2**22 + 5
HERE = os.getpid()
ENDED = 1500.0  # of the last of 25 turns, in seconds since the run began


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "j.sqlite"


@pytest.mark.parametrize(
    ("ago", "facts", "event", "state"),
    [
        (3, {"pid": HERE}, None, State.RUNNING),
        (3, {}, None, State.RUNNING),
        (3, {"pid": NO_PROCESS}, None, State.GONE),
        (3, {"pid": NO_PROCESS, "host": "elsewhere"}, None, State.RUNNING),
        (7200, {"pid": HERE}, None, State.SILENT),
        (7200, {"pid": NO_PROCESS}, "stopped", State.STOPPED),
        (7200, {"pid": NO_PROCESS}, "resumed", State.GONE),
    ],
)
def test_a_journal_says_whether_its_controller_is_alive(
    path: Path, ago: float, facts: dict[str, Any], event: str | None, state: State
) -> None:
    notes = [Event(ENDED, event, "by the user")] if event else []
    write(path, turns(25), *notes, started_at=NOW - ENDED - ago, **facts)
    with Journal.read(path) as journal:
        controller = judge_liveness(journal, NOW)
    assert controller.state is state
    assert (controller.ended_at, controller.age_seconds) == (ENDED, ago)
    assert controller.pid == (NO_PROCESS if state is State.GONE else None)


def test_without_any_turn_a_controller_is_new(path: Path) -> None:
    write(path, [])
    with Journal.read(path) as journal:
        assert judge_liveness(journal, NOW).state is State.NEW


@pytest.mark.parametrize("started_at", [None, "yesterday", NOW + 10, -1.0])
def test_without_a_plausible_start_a_journal_is_a_record(path: Path, started_at: object) -> None:
    write(path, turns(2), started_at=started_at)
    with Journal.read(path) as journal:
        controller = judge_liveness(journal, NOW)
    assert (controller.state, controller.ended_at, controller.age_seconds) == (State.RECORDED, 120.0, None)


def test_a_decision_that_is_being_applied_is_a_sign_of_life(path: Path) -> None:
    write_pending(path, started_at=NOW - 640)  # the last turn ended 100 seconds ago, the decision came 40 ago
    with Journal.read(path) as journal:
        controller = judge_liveness(journal, NOW)
    assert (controller.state, controller.ended_at, controller.age_seconds) == (State.RUNNING, 600.0, 40.0)
