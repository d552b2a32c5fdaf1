"""How a run ends, what is left of it, and how it goes on."""

import signal

import pytest

from tests.cli.commands import refused
from tests.spark.controllers import Controller, eventually
from tests.spark.support import check_totals

from .state import MARK, at, holding


def test_everything_vanishes_when_it_is_killed_and_it_is_continued_only_on_request(
    run: Controller, capsys: pytest.CaptureFixture[str]
) -> None:
    at(run, nodes=2, project=4)
    assert run.groups() and len(run.processes()) >= 6
    run.end(signal.SIGKILL)
    eventually(lambda: not run.left(), "nothing left")
    output = refused(capsys, "run", "--folder", str(run.folder), str(run.script))
    assert "holds an earlier run" in output

    before = run.last()
    assert before is not None
    run.start("--resume")
    observed = run.wait_for_turns(1)
    assert observed.number > before.number
    assert observed.memory["asked"] >= before.memory["asked"] > 0
    assert observed.outcome.configuration == before.outcome.configuration
    assert "resumed" in {event.kind for event in run.events()}


def test_ctrl_c_stops_it_cleanly_with_nothing_left_lost_or_doubled(run: Controller) -> None:
    run.wait_for_turns(1)
    run.send(signal.SIGINT)
    run.send(signal.SIGINT)  # an impatient user
    assert run.end() == 130
    texts = [line for line in run.err.splitlines() if "waiting for the running batch to end" not in line]
    assert texts == ["rheostat: interrupted: the run was stopped cleanly"]
    assert run.left() == []
    last = run.events()[-1]
    assert (last.kind, last.text) == ("stopped", "interrupted")
    assert holding(run) == []  # no secret either
    assert MARK not in run.out + run.err
    assert check_totals(run.folder / "totals") > 0
