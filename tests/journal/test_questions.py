"""What `status` and `explain` ask of a journal, as values."""

from dataclasses import replace
from pathlib import Path

import pytest

from rheostat.journal.explanation import Explanation, explain
from rheostat.journal.liveness import State
from rheostat.journal.run_status import RunStatus, read_status
from rheostat.journal.store import Journal
from rheostat.journal.window import operator_rows, skew
from rheostat.model.errors import UserError
from rheostat.model.observation import Event, InstanceMeasures, OperatorMeasures
from rheostat.policies.static import Static
from tests.control.fakes import Sometimes
from tests.journal.samples import turns, write, write_interrupted, write_pending

NOW = 1_800_000_000.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "j.sqlite"


def status(path: Path, changes: int = 5) -> RunStatus:
    with Journal.read(path) as journal:
        return read_status(journal, changes, NOW)


def explained(path: Path, number: int | None = None) -> Explanation:
    with Journal.read(path) as journal:
        return explain(journal, number, NOW)


def test_a_status_has_the_newest_turn_changes_events_and_totals(path: Path) -> None:
    write(path, turns(100), *(Event(float(n), "driver", f"note {n}") for n in range(9)), started_at=NOW - 9e4)
    answer = status(path, changes=2)
    assert answer.latest is not None and answer.latest.number == 100
    assert [turn.number for turn in answer.changes] == [90, 100]
    assert [event.text for event in answer.events] == ["note 7", "note 8"]
    assert (answer.whole_run.turns, answer.whole_run.applied, answer.whole_run.attempts) == (100, 10, 10)
    assert answer.liveness.state is State.SILENT
    assert answer.pending is None


def test_the_last_day_leaves_out_what_ended_before(path: Path) -> None:
    write(path, turns(1500))
    answer = status(path)
    assert (answer.whole_run.turns, answer.last_day.turns) == (1500, 1441)


def test_a_status_without_events_still_knows_that_the_controller_stopped(path: Path) -> None:
    write(path, turns(1), Event(60.0, "stopped", "by the user"), started_at=NOW - 100)
    assert status(path, changes=0).liveness.state is State.STOPPED


def test_a_decision_without_an_outcome_is_the_latest(path: Path) -> None:
    decision = write_pending(path)
    answer = status(path)
    assert answer.latest == decision
    assert answer.changes == [] and answer.whole_run.attempts == 0
    assert answer.pending is not None
    assert (answer.pending.number, answer.pending.status) == (10, "pending")
    assert (answer.pending.change, answer.pending.outcome) == ("split 1 -> 2", "")


def test_an_interrupted_change_is_a_change_with_an_outcome(path: Path) -> None:
    write_interrupted(path)
    answer = status(path)
    assert answer.pending is None
    assert [turn.status for turn in answer.changes] == ["interrupted"]


def test_the_latest_change_is_explained_with_its_effect(path: Path) -> None:
    write(path, turns(25))
    answer = explained(path)
    assert answer.summary.number == 20
    assert answer.outcome is not None and answer.outcome.status == "applied"
    assert [turn.number for turn in answer.following] == [21, 22, 23]
    effect = next(effect for effect in answer.effects if effect.measure == "highest utilisation")
    assert effect.before == pytest.approx(0.4)
    assert effect.after == pytest.approx((0.5, 0.5, 0.5))
    assert answer.changed_again_in is None


def test_an_effect_ends_with_the_next_change(path: Path) -> None:
    write(path, turns(9, Sometimes(every=2)))
    answer = explained(path, 4)
    assert [turn.number for turn in answer.following] == [5, 6]
    assert answer.changed_again_in == 6


def test_a_pending_decision_is_the_latest_change(path: Path) -> None:
    decision = write_pending(path)
    for answer in (explained(path), explained(path, 10)):
        assert answer.decision == decision
        assert answer.outcome is None
        assert answer.pending
        assert answer.following == ()
    assert not explained(path, 9).pending


@pytest.mark.parametrize("number", [0, -1, 11, 10**21])
def test_a_number_without_a_turn_is_refused_with_the_range(path: Path, number: int) -> None:
    write_pending(path)
    with pytest.raises(UserError, match=rf"there is no turn {number}; .*j\.sqlite has turns 1 to 10"):
        explained(path, number)


def test_a_journal_without_turns_has_nothing_to_explain(path: Path) -> None:
    write(path, [])
    with pytest.raises(UserError, match="has no turns yet"):
        explained(path)


def test_operators_have_rates_where_they_were_measured(path: Path) -> None:
    turn = turns(1, Static())[0]
    lines, split, count = operator_rows(turn)
    assert (split.name, split.parallelism, split.rows_per_second) == ("split", 1, 1000.0)
    assert split.utilisation == pytest.approx(0.5)
    assert split.cpu_cores == pytest.approx(0.5)
    unmeasured = replace(turn.observation.operators["split"], processed=None)
    observation = replace(turn.observation, operators={"split": unmeasured})
    (row,) = operator_rows(replace(turn, observation=observation))
    assert row.rows_per_second is None
    assert (lines.name, count.name) == ("lines", "count")


def test_skew_is_the_largest_share_over_the_mean() -> None:
    instances = tuple(InstanceMeasures("n1", rows, rows, None) for rows in (10.0, 10.0, 40.0))
    assert skew(OperatorMeasures(3, instances=instances)) == 2.0
    assert skew(OperatorMeasures(3, instances=instances, skew=1.5)) == 1.5
    assert skew(OperatorMeasures(3)) is None
