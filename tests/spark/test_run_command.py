"""`rheostat run` as a user runs it: unchanged scripts, their journals, and every way in which a run ends."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from statistics import mean

import pytest

from rheostat.cli.journals import title
from rheostat.infrastructure.local import LocalProvider
from rheostat.model.configuration import NodeKind
from rheostat.model.decision import Status
from tests.cli.commands import RHEOSTAT, refused

from .controllers import Controller, controller, eventually
from .support import application, check_totals, newest_batch, observe_batches, plan

KIND = NodeKind(cores=1.0, slots=2, memory_mb=1024.0)


# -- a plain script on the embedded cluster ---------------------------------------------------------------


def test_an_unchanged_script_is_scaled_hurt_killed_resumed_and_ended_without_loss(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with controller(tmp_path, "plain", str(tmp_path / "run"), "50", options="--nodes 1:2") as run:
        run.start()
        _its_stages_are_discovered_and_named(run)
        _its_cluster_takes_no_stranger(run)
        _a_second_controller_of_its_folder_is_refused(run, capsys)
        _its_shuffle_and_its_nodes_change_live_and_its_state_stays(run)
        _a_policy_that_fails_holds_with_an_alert_and_the_run_goes_on(run)
        _a_query_that_dies_starts_again_with_the_same_parallelism(run)
        _status_and_explain_read_its_journal(run)
        _everything_vanishes_when_the_controller_is_killed(run)
        _an_earlier_run_is_continued_only_on_request(run, capsys)
        _ctrl_c_ends_it_in_order(run)
        assert check_totals(run.folder / "totals") > 0


def _its_stages_are_discovered_and_named(run: Controller) -> None:
    turn = run.wait_for_turns(5)
    assert turn.outcome.configuration.parallelism == {"1-scan": 1, "2-project": 2, "3-aggregate": 3}
    run.wait_for(lambda: _load(run) == pytest.approx(50, rel=0.2))
    facts = run.facts()
    assert run.process is not None
    assert (facts["application"], facts["mode"], facts["pid"]) == ("plain", "microbatch", run.process.pid)
    assert facts["policy"] == f"told(by={run.wishes})"
    assert "started" in {event.kind for event in run.events()}


def _load(run: Controller) -> float:
    """Rows per second over the last windows that hold a batch."""
    seen = (turn.observation.application.load.get("1-scan") for turn in run.turns()[-10:])
    return mean(load for load in seen if load is not None)


def _its_cluster_takes_no_stranger(run: Controller) -> None:
    given = {environment["_SPARK_AUTH_SECRET"] for environment in run.executors()}
    assert [len(secret) for secret in given] == [64]


def _its_shuffle_and_its_nodes_change_live_and_its_state_stays(run: Controller) -> None:
    run.wish({"parallelism": {"2-project": 4}, "nodes": 2})
    turn = run.wait_for_turn(lambda turn: turn.plan.changes)
    assert turn.outcome.status is Status.APPLIED, turn.outcome.reason
    seen = run.wait_for_turns(1)
    assert seen.outcome.configuration.nodes == len(seen.observation.nodes) == 2
    counts = {name: measures.parallelism for name, measures in seen.observation.operators.items()}
    assert counts == {"1-scan": 1, "2-project": 4, "3-aggregate": 3}
    assert sum(event.kind == "query started" for event in run.events()) == 1  # it never stopped


def _a_policy_that_fails_holds_with_an_alert_and_the_run_goes_on(run: Controller) -> None:
    run.wish({"fail": "a third party's mistake"})
    alert = run.wait_for(lambda: run.read(lambda journal: journal.alerts()))
    assert alert is not None and "ValueError: a third party's mistake" in alert[-1].text
    run.wishes.unlink()
    assert run.wait_for_turns(2).plan.alert is None
    assert "ALERT" in run.out


def _a_query_that_dies_starts_again_with_the_same_parallelism(run: Controller) -> None:
    trap = run.folder / "trap"
    trap.touch()
    event = run.wait_for_event("driver", "fell into the trap")
    trap.unlink()
    assert "starts again in 1 s" in event.text
    run.wait_for(lambda: sum(event.kind == "query started" for event in run.events()) >= 2)
    seen = run.wait_for_turns(2)
    assert seen.observation.operators["2-project"].parallelism == 4
    assert seen.outcome.configuration.nodes == 2


def _a_second_controller_of_its_folder_is_refused(
    run: Controller, capsys: pytest.CaptureFixture[str]
) -> None:
    told = refused(capsys, "run", "--folder", str(run.folder), str(run.script))
    assert "another controller runs" in told
    assert run.process is not None and run.process.poll() is None


def _status_and_explain_read_its_journal(run: Controller) -> None:
    assert "plain" in title(run.facts())
    for command in ("status", "explain"):
        done = os.popen(f"{RHEOSTAT} {command} --journal {run.folder}/journal.sqlite")
        told = done.read()
        assert done.close() is None
        assert "told so" in told


def _everything_vanishes_when_the_controller_is_killed(run: Controller) -> None:
    assert run.groups() and len(run.processes()) >= 6
    run.end(signal.SIGKILL)
    eventually(lambda: not run.left(), "nothing left")


def _an_earlier_run_is_continued_only_on_request(run: Controller, capsys: pytest.CaptureFixture[str]) -> None:
    told = refused(capsys, "run", "--folder", str(run.folder), str(run.script))
    assert "holds an earlier run" in told
    before = run.last()
    assert before is not None
    run.start("--resume")
    seen = run.wait_for_turns(1)
    assert seen.number > before.number
    assert seen.memory["asked"] >= before.memory["asked"] > 0
    assert seen.outcome.configuration == before.outcome.configuration
    assert "resumed" in {event.kind for event in run.events()}


def _ctrl_c_ends_it_in_order(run: Controller) -> None:
    run.wait_for_turns(1)
    run.send(signal.SIGINT)
    run.send(signal.SIGINT)  # an impatient user
    assert run.end() == 130
    assert run.err.splitlines()[-1] == "rheostat: interrupted: the run was ended in order"
    assert run.left() == []
    last = run.events()[-1]
    assert (last.kind, last.text) == ("stopped", "interrupted")


# -- a cluster of somebody else: the driver outlives its controller ---------------------------------------


@pytest.fixture
def foreign(cluster: LocalProvider) -> Iterator[LocalProvider]:
    """Two Workers that are not the controller's."""
    names = [cluster.add(KIND).name for _ in range(2)]
    for name in names:
        cluster.wait(name)
    yield cluster
    for name in names:
        cluster.remove(name)


def test_a_driver_on_a_cluster_outlives_its_controller_and_the_next_one_takes_it_over(
    foreign: LocalProvider, tmp_path: Path
) -> None:
    arguments = ("50", "microbatch", "count", str(tmp_path / "totals"))
    options = f"--master {foreign.url} --nodes 1:2 --trigger 2"
    with controller(tmp_path, "totals", *arguments, options=options) as run:
        run.start().wait_for_turns(1)
        run.wish({"parallelism": {"key": 1}})
        run.wait_for_turn(lambda turn: turn.outcome.configuration.parallelism["key"] == 1)
        run.wait_for_turn(lambda turn: len(turn.observation.nodes) == 1)  # Spark may have begun on both
        before, driver, commits = run.wait_for_turns(1), run.driver, _commits(run)
        started = [event.text for event in run.events() if event.kind == "query started"]
        run.end(signal.SIGKILL)
        eventually(lambda: _commits(run) > commits + 1, "the driver goes on")

        run.wish({"parallelism": {"key": 2}, "nodes": 2})
        run.start("--resume", "--dry-run")
        run.wait_for_turn(lambda turn: turn.outcome.status is Status.DRY_RUN, before.number)
        seen = run.wait_for_turns(2)
        assert seen.outcome.configuration == before.outcome.configuration  # decided, recorded, not done
        assert seen.observation.operators["key"].parallelism == 1
        assert len(seen.observation.nodes) == 1
        assert "dry run: would change" in run.out
        assert "resumed" in {event.kind for event in run.events()}
        assert run.driver == driver
        assert [event.text for event in run.events() if event.kind == "query started"] == started

        os.kill(driver, signal.SIGKILL)  # the new controller starts another, from the checkpoint
        run.wait_for_event("driver", "starts again")
        run.wait_for(lambda: run.driver != driver)
        seen = run.wait_for_turns(3)
        assert seen.observation.operators["key"].parallelism == 1
        assert run.end(signal.SIGTERM) == 143
        assert run.left() == []
        assert run.is_at_a_boundary()
    assert check_totals(tmp_path / "totals") > 0


def _commits(run: Controller) -> int:
    return max(int(f.name) for f in (run.folder / "checkpoint" / "commits").iterdir() if f.name.isdigit())


# -- scripts of all kinds -----------------------------------------------------------------------------------


def test_of_two_queries_the_first_is_scaled_and_an_event_says_so(
    cluster: LocalProvider, tmp_path: Path
) -> None:
    with application(cluster, tmp_path, "plain_two", str(tmp_path), parallelism={}) as engine:
        assert list(engine.topology.names) == ["1-scan", "2-project"]
        told = [event.text for event in (*engine.observe().events, *observe_batches(engine, 2).events)]
        assert any("2 queries: first is scaled" in text for text in told), told
        outcome = engine.apply(plan(engine, **{"2-project": 5}))
        assert outcome.status is Status.APPLIED, outcome.reason
        assert observe_batches(engine, 2).operators["2-project"].parallelism == 5
        assert (tmp_path / "parts").read_text() == "2"
        link = engine.monitor.link
        link.stop()
        assert link.process is not None and link.process.returncode == 0  # both queries ended in order


def test_a_script_of_which_no_stage_can_change_gets_nodes_on_which_more_of_its_tasks_run(
    cluster: LocalProvider, tmp_path: Path
) -> None:
    with application(cluster, tmp_path, "plain", str(tmp_path), "50", "0", parallelism={}) as engine:
        assert engine.configuration.parallelism == {"1-scan": 1, "2-aggregate": 2}  # of three, in two slots
        before = engine.monitor.run_id
        outcome = engine.apply(plan(engine, nodes=2, **{"2-aggregate": 3}))
        assert outcome.status is Status.APPLIED, outcome.reason
        assert outcome.configuration.parallelism == {"1-scan": 1, "2-aggregate": 3}
        observe_batches(engine, 3)
        aggregate = next(stage for stage in newest_batch(engine).stages if stage.tasks == 3)
        assert len({executor for executor, _, _ in aggregate.each}) == 2
        into = engine.apply(plan(engine, nodes=1, **{"2-aggregate": 2}))
        assert (into.status, into.configuration.nodes) == (Status.APPLIED, 1)
        observe_batches(engine, 1)
        assert engine.monitor.run_id == before
    assert check_totals(tmp_path / "totals") > 0


@pytest.mark.parametrize(
    ("which", "told"),
    [
        ("nothing", "the script started no streaming query: it must call writeStream...start()"),
        ("slow", "plain_wrong.py, line 12: AnalysisException: [UNRESOLVED_COLUMN"),
    ],
)
def test_a_script_with_a_mistake_is_one_line(
    cluster: LocalProvider, tmp_path: Path, which: str, told: str
) -> None:
    with controller(tmp_path, "plain_wrong", which, options=f"--master {cluster.url}") as run:
        assert told in run.refused()
        assert run.left() == []
        assert not (run.folder / "journal.sqlite").exists()  # so that the next attempt needs no other folder


def test_a_script_that_is_no_python_is_refused_before_anything_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "app.py"
    script.write_text("from pyspark.sql import SparkSession\nspark = = 1\n")
    assert "app.py, line 2: invalid syntax" in refused(
        capsys, "run", "--folder", str(tmp_path / "run"), str(script)
    )
    script.unlink()
    assert "there is no such script" in refused(capsys, "run", "--folder", str(tmp_path / "run"), str(script))
    assert list(tmp_path.iterdir()) == []


def test_there_must_be_a_run_to_resume(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "app.py"
    script.write_text("pass")
    told = refused(capsys, "run", "--resume", "--folder", str(tmp_path / "run"), str(script))
    assert "holds no run to resume" in told
    assert list(tmp_path.iterdir()) == [script]


@pytest.mark.parametrize(
    ("moment", "number", "code"), [("folder", signal.SIGINT, 130), ("driver", signal.SIGTERM, 143)]
)
def test_a_start_that_is_interrupted_leaves_nothing(
    tmp_path: Path, moment: str, number: signal.Signals, code: int
) -> None:
    with controller(tmp_path, "plain", str(tmp_path), "50") as run:
        run.start()
        begun = {
            "folder": lambda: list(run.temporary.glob("rheostat-*")),
            "driver": (run.folder / "driver.pid").exists,
        }
        run.wait_for(begun[moment])
        assert run.end(number) == code
        assert run.err.splitlines() == ["rheostat: interrupted: the run was ended in order"]
        assert run.left() == []
        assert not (run.folder / "journal.sqlite").exists()
