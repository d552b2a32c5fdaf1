"""Plain scripts under `rheostat run`, unchanged: measured from the first batch on, with results as in Spark.

None of them imports anything of ours.
"""

import signal
from collections import Counter
from collections.abc import Mapping
from itertools import takewhile
from pathlib import Path

import pytest

from rheostat.engines.spark.observe.query_window import COLD_BATCHES
from rheostat.model.observation import ApplicationMeasures, Observation
from rheostat.services.local_cluster import LocalCluster
from tests.spark.controllers import Controller, controller

from .cases import CASES, Case, results, write_input
from .conftest import Plain


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.script)
def test_a_plain_script_runs_as_under_plain_spark_and_is_measured_from_its_first_batch_on(
    case: Case, plain: Plain, foreign: LocalCluster, tmp_path: Path
) -> None:
    folder, expected = write_input(tmp_path / "data"), plain.expected[case.script]
    assert "rheostat" not in case.path.read_text()
    options = f"--master {foreign.url} --nodes 1:1"
    if case.script == "kafka_source":
        options += f" --kafka {plain.broker.servers}"
    with controller(tmp_path, case.path, *plain.arguments(case, folder), options=options) as run:
        run.start()
        if case.ends:
            assert run.end() == 0, run.err
        else:
            run.wait_for(lambda: results(case, folder) == expected, f"the results of {case.script}")
            run.wait_for(lambda: read(run) == case.rows, "all rows are measured")
            assert run.end(signal.SIGTERM) == 143
        assert results(case, folder) == expected != []
        assert run.left() == []
        check_measures(run, case)
        said = [event.text for event in run.events() if event.kind == "script" and ", into " in event.text]
        assert len(said) == len(case.queries)
        assert not any("@" in text for text in said), said


def read(run: Controller) -> float:
    """The rows that its sources read in all windows."""
    return sum(
        turn.observation.operators[source].processed or 0
        for turn in run.turns()
        for measures in queries(turn.observation).values()
        if measures.batches
        for source in measures.load
    )


def queries(observation: Observation) -> Mapping[str, ApplicationMeasures]:
    return observation.queries or {"": observation.application}


def check_measures(run: Controller, case: Case) -> None:
    """The plan is known from the first turn on, a batch while it runs, and costs once the JVMs are warm."""
    turns = run.turns()
    seen = [turn.observation for turn in turns]
    assert set(seen[0].operators) == case.operators
    assert set(seen[0].queries) == (set(case.queries) if len(case.queries) > 1 else set())
    before = list(takewhile(lambda it: not it.application.batches, seen))
    blind = [it for it in before if not any(measures.running_seconds for measures in queries(it).values())]
    assert len(blind) <= 1  # its first batch was still being planned
    batches, complete = Counter[str](), 0
    for turn in turns:
        window = queries(turn.observation)
        assert all(measures.throughput for measures in window.values() if measures.batches)
        batches.update({name: measures.batches for name, measures in window.items()})
        if all(measures.batches and batches[name] > COLD_BATCHES for name, measures in window.items()):
            assert turn.evaluation.missing == ()
            complete += 1
    assert complete > 0
    known = [node.cpu is not None for it in seen for node in it.nodes]
    assert known.count(True) > len(seen) / 2
