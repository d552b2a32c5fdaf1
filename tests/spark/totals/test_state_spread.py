"""State follows the executors: a stateful operator runs on all of them, whoever had its state before."""

from collections import Counter
from pathlib import Path

import pytest

from rheostat.engines.spark.engine import SparkEngine
from rheostat.engines.spark.spec import SPREAD_STATE
from rheostat.infrastructure.local import LocalProvider
from rheostat.model.configuration import NodeKind
from rheostat.model.decision import Status
from tests.spark.shared import TOTALS_KIND, Shared
from tests.spark.support import application, check_totals, newest_batch, observe_batches, plan

PARALLELISM = {"in": 1, "key": 2, "total": 4}


def test_state_spreads_over_new_nodes_and_comes_back_when_they_leave(totals: Shared) -> None:
    engine = totals.at(nodes=1, total=4)  # all state would find a slot where it was
    observe_batches(engine, 3)
    assert _tasks_per_executor(engine) == [4]

    _change(engine, nodes=2)
    events = observe_batches(engine, 3).events
    assert _tasks_per_executor(engine) == [2, 2]
    moves = [event.text for event in events if event.kind == "state"]
    assert any(text.startswith("2 of 4 partitions moved to executor ") for text in moves), moves

    _change(engine, nodes=1)
    observe_batches(engine, 3)
    assert _tasks_per_executor(engine) == [4]


def test_state_spreads_over_nodes_before_it_spreads_over_the_executors_of_a_node(
    cluster: LocalProvider, tmp_path: Path
) -> None:
    two = NodeKind(cores=1.0, slots=4, executors=2, memory_mb=1600.0)
    parallelism = {**PARALLELISM, "total": 2}  # one on each executor: of executors alone, nobody has too much
    arguments = ("200", "microbatch", "count", str(tmp_path / "totals"))
    with application(cluster, tmp_path, "totals", *arguments, parallelism=parallelism, kind=two) as engine:
        observe_batches(engine, 4)
        assert _tasks_per_executor(engine) == [1, 1]
        _change(engine, nodes=2)
        observe_batches(engine, 3)
        assert _tasks_per_executor(engine) == [1, 1]
        assert len({engine.monitor.nodes_of_executors()[one] for one in _executors(engine)}) == 2
    assert check_totals(tmp_path / "totals") > 0


@pytest.mark.long
def test_state_stays_where_a_user_wants_it_to(cluster: LocalProvider, tmp_path: Path) -> None:
    arguments = ("200", "microbatch", "count", str(tmp_path / "totals"))
    off = {SPREAD_STATE: "false"}
    with application(
        cluster, tmp_path, "totals", *arguments, parallelism=PARALLELISM, kind=TOTALS_KIND, settings=off
    ) as engine:
        observe_batches(engine, 3)
        _change(engine, nodes=2)
        observe_batches(engine, 3)
        assert _tasks_per_executor(engine) == [4]


def _change(engine: SparkEngine, nodes: int) -> None:
    outcome = engine.apply(plan(engine, nodes=nodes))
    assert outcome.status is Status.APPLIED, outcome.reason


def _tasks_per_executor(engine: SparkEngine) -> list[int]:
    """Of the stateful operator, in the newest batch."""
    return sorted(Counter(_executors(engine)).values())


def _executors(engine: SparkEngine) -> list[str]:
    return [executor for executor, _, _ in newest_batch(engine).stages[-1].each]
