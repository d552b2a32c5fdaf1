"""`rheostat run` on a cluster of somebody else, with scripts of all kinds, and starts that are cut short."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from rheostat.apps.shipped import find_script
from rheostat.model.configuration import NodeKind
from rheostat.model.decision import Status
from rheostat.services import kafka_broker
from rheostat.services.local_cluster import LocalCluster
from rheostat.trials.feed import feeding
from tests.cli.commands import process, refused

from .controllers import Controller, controller, eventually
from .support import application, check_totals, newest_batch, observe_batches, plan, wait_for_plans

KIND = NodeKind(cores=1.0, slots=2, memory_mb=1024.0)


# -- a cluster of somebody else: the driver outlives its controller ---------------------------------------


@pytest.fixture
def foreign(cluster: LocalCluster) -> Iterator[LocalCluster]:
    """Two Workers that are not the controller's."""
    names = [cluster.add(KIND).name for _ in range(2)]
    for name in names:
        cluster.wait(name)
    yield cluster
    for name in names:
        cluster.remove(name)


def test_a_driver_on_a_cluster_outlives_its_controller_and_the_next_one_takes_it_over(
    foreign: LocalCluster, tmp_path: Path
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
        observed = run.wait_for_turns(2)
        assert observed.outcome.configuration == before.outcome.configuration  # decided, recorded, not done
        assert observed.observation.operators["key"].parallelism == 1
        assert len(observed.observation.nodes) == 1
        assert "dry run: would change" in run.out
        assert "resumed" in {event.kind for event in run.events()}
        assert run.driver == driver
        assert [event.text for event in run.events() if event.kind == "query started"] == started

        os.kill(driver, signal.SIGKILL)  # the new controller starts another, from the checkpoint
        run.wait_for_event("driver", "restarting")
        run.wait_for(lambda: run.driver != driver)
        observed = run.wait_for_turns(3)
        assert observed.observation.operators["key"].parallelism == 1
        assert run.end(signal.SIGTERM) == 143
        assert run.left() == []
        assert run.is_at_a_boundary()
    assert check_totals(tmp_path / "totals") > 0


def _commits(run: Controller) -> int:
    return max(int(f.name) for f in (run.folder / "checkpoint" / "commits").iterdir() if f.name.isdigit())


# -- a plan by hand -----------------------------------------------------------------------------------------


def test_an_allocation_is_applied_to_the_running_application_and_its_effect_explained(
    foreign: LocalCluster, broker: kafka_broker.Broker, tmp_path: Path
) -> None:
    options = f"--master {foreign.url} --nodes 1:2 --mode realtime --kafka {broker.servers}"
    curve = "step:low=10:high=300:start=20s:end=1h:duration=1h"  # the first batches run in cold JVMs
    with feeding(broker.servers, curve, seed=0, partitions=1) as sent:
        made = controller(tmp_path, find_script("linear"), "--", "--topic", sent.topic, options=options)
        with made as run:
            run.start().wait_for_turns(1)
            sent.begin()
            check_an_allocation_is_applied(run)


def check_an_allocation_is_applied(run: Controller) -> None:
    """A row takes 5 ms of CPU in the sink, of 3.3 that there are: one instance cannot keep up."""
    by = process(f"rheostat allocate --journal {run.folder} --units 1", run.place)
    assert by.returncode == 2, by  # nothing flows yet

    def applied() -> str:
        """The first windows may lack measures."""
        answer = process(f"rheostat allocate --journal {run.folder} --units 1 --apply", run.place)
        print(answer.stdout, answer.stderr)
        return answer.stdout if answer.returncode == 0 else ""

    assert "Applied: sink 1 -> 2" in run.wait_for(applied, "an allocation")
    turn = run.wait_for_turn(lambda turn: turn.plan.asked_by, 1)
    assert turn.outcome.configuration.parallelism == {"source": 1, "intermediate": 1, "sink": 2}
    run.wait_for_turn(lambda turn: turn.observation.operators["sink"].parallelism == 2, turn.number + 1)
    explained = process(f"rheostat explain {turn.number} --journal {run.folder}", run.place).stdout
    assert "Predicted throughput of the leaves" in explained


# -- scripts of all kinds -----------------------------------------------------------------------------------


def test_of_two_queries_each_is_measured_and_sized(cluster: LocalCluster, tmp_path: Path) -> None:
    with application(cluster, tmp_path, "plain_two", str(tmp_path), parallelism={}) as engine:
        wait_for_plans(engine)
        assert list(engine.topology.names) == ["1-scan", "2-project", "second.1-scan", "second.2-project"]
        outcome = engine.apply(plan(engine, **{"2-project": 5}))
        assert outcome.status is Status.APPLIED, outcome.reason
        observed = observe_batches(engine, 4)
        assert observed.operators["2-project"].parallelism == 5
        assert observed.operators["second.2-project"].parallelism == 2
        assert set(observed.queries) == {"first", "second"}
        assert (tmp_path / "parts").read_text() == "2"
        driver = engine.driver
        driver.stop()
        assert driver.process is not None and driver.process.returncode == 0  # both queries ended in order


def test_a_script_without_a_changeable_stage_gets_nodes_that_run_more_of_its_tasks(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    with application(cluster, tmp_path, "plain", str(tmp_path), "50", "0", parallelism={}) as engine:
        wait_for_plans(engine)
        assert engine.configuration.parallelism == {"1-scan": 1, "2-aggregate": 2}  # of three, in two slots
        before = engine.monitor.run_id
        outcome = engine.apply(plan(engine, nodes=2, **{"2-aggregate": 3}))
        assert outcome.status is Status.APPLIED, outcome.reason
        assert outcome.configuration.parallelism == {"1-scan": 1, "2-aggregate": 3}
        observe_batches(engine, 3)
        aggregate = next(stage for stage in newest_batch(engine).stages if stage.tasks == 3)
        assert len({executor for executor, *_ in aggregate.each}) == 2
        into = engine.apply(plan(engine, nodes=1, **{"2-aggregate": 2}))
        assert (into.status, into.configuration.nodes) == (Status.APPLIED, 1)
        observe_batches(engine, 1)
        assert engine.monitor.run_id == before
    assert check_totals(tmp_path / "totals") > 0


@pytest.mark.parametrize(
    ("which", "output"),
    [
        ("nothing", "the script started no streaming query: it must call writeStream...start()"),
        ("column", "plain_wrong.py, line 9: AnalysisException: [UNRESOLVED_COLUMN"),
    ],
)
def test_a_script_with_a_mistake_is_one_line(
    cluster: LocalCluster, tmp_path: Path, which: str, output: str
) -> None:
    with controller(tmp_path, "plain_wrong", which, options=f"--master {cluster.url}") as run:
        assert output in run.refused()
        assert run.left() == []
        assert not (run.folder / "journal.sqlite").exists()  # so that the next attempt needs no other folder


def test_a_script_that_is_not_python_is_refused_before_anything_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "app.py"
    script.write_text("from pyspark.sql import SparkSession\nspark = = 1\n")
    assert "app.py, line 2: invalid syntax" in refused(
        capsys, "run", "--folder", str(tmp_path / "run"), str(script)
    )
    script.unlink()
    assert "no such script" in refused(capsys, "run", "--folder", str(tmp_path / "run"), str(script))
    assert list(tmp_path.iterdir()) == []


def test_there_must_be_a_run_to_resume(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "app.py"
    script.write_text("pass")
    output = refused(capsys, "run", "--resume", "--folder", str(tmp_path / "run"), str(script))
    assert "holds no run to resume" in output
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
        assert run.err.splitlines() == ["rheostat: interrupted: the run was stopped cleanly"]
        assert run.left() == []
        assert not (run.folder / "journal.sqlite").exists()
