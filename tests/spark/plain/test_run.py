"""`rheostat run` as a user runs it: an unchanged script is discovered, scaled, damaged and reported."""

import os
from statistics import mean

import pytest

from tests.cli.commands import RHEOSTAT, refused
from tests.spark.controllers import Controller

from .state import at, fall_into_the_trap, starts


def test_its_stages_are_discovered_and_named(run: Controller) -> None:
    turn = at(run, nodes=1, project=2)
    assert turn.outcome.configuration.parallelism == {"1-scan": 1, "2-project": 2, "3-aggregate": 3}
    assert load(run, turns=8) == pytest.approx(50, rel=0.2)
    facts = run.facts()
    assert run.process is not None
    assert (facts["application"], facts["mode"], facts["pid"]) == ("plain", "microbatch", run.process.pid)
    assert facts["policy"] == f"scripted(file={run.wishes})"
    assert "started" in {event.kind for event in run.events()}


def load(run: Controller, turns: int) -> float:
    """Rows per second over the next windows that hold a batch."""
    observed = [run.wait_for_turns(1).observation.application.load["1-scan"] for _ in range(turns)]
    return mean(load for load in observed if load is not None)


def test_a_second_controller_of_its_folder_is_refused(
    run: Controller, capsys: pytest.CaptureFixture[str]
) -> None:
    run.wait_for_turns(1)
    output = refused(capsys, "run", "--folder", str(run.folder), str(run.script))
    assert "another controller is running" in output
    assert run.process is not None and run.process.poll() is None


def test_its_shuffle_and_its_nodes_change_live_and_its_state_stays(run: Controller) -> None:
    at(run, nodes=1, project=2)
    before = starts(run)
    observed = at(run, nodes=2, project=4).observation
    assert len(observed.nodes) == 2
    counts = {name: measures.parallelism for name, measures in observed.operators.items()}
    assert counts == {"1-scan": 1, "2-project": 4, "3-aggregate": 3}
    assert starts(run) == before  # it never stopped


def test_a_policy_that_fails_holds_with_an_alert_and_the_run_goes_on(run: Controller) -> None:
    run.wait_for_turns(1)
    run.wish({"fail": "a third party's mistake"})
    turn = run.wait_for_turn(lambda turn: turn.plan.alert)
    assert "ValueError: a third party's mistake" in (turn.plan.alert or "")
    run.wishes.unlink()
    assert run.wait_for_turns(2).plan.alert is None
    assert "ALERT" in run.out


def test_a_query_that_dies_starts_again_with_the_same_parallelism(run: Controller) -> None:
    at(run, nodes=2, project=4)
    assert "restarting in" in fall_into_the_trap(run)
    observed = run.wait_for_turns(1)
    assert observed.observation.operators["2-project"].parallelism == 4
    assert observed.outcome.configuration.nodes == 2


def test_status_and_explain_read_its_journal(run: Controller) -> None:
    for count in (3, 4):  # so that one of them is a change
        at(run, nodes=2, project=count)
    assert "plain" in run.facts()["application"]
    for command in ("status", "explain"):
        done = os.popen(f"{RHEOSTAT} {command} --journal {run.folder}/journal.sqlite")
        output = done.read()
        assert done.close() is None
        assert "as scripted" in output
