"""The mechanisms in Real-Time Mode, where every instance holds a slot and a query that lacks one dies."""

from collections.abc import Iterator

import pytest

from rheostat.engines.spark.engine import SparkEngine
from rheostat.infrastructure.local import LocalProvider
from rheostat.model.configuration import NodeKind
from rheostat.model.decision import Status
from rheostat.model.observation import Observation

from .support import application, observe_batches, plan, soon

KIND = NodeKind(cores=1.0, slots=4, memory_mb=1024.0)


@pytest.fixture(scope="module")
def counting(cluster: LocalProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkEngine]:
    folder = tmp_path_factory.mktemp("realtime")
    start = {"in": 1, "key": 1, "total": 1}
    arguments = ("100", "realtime", "count")
    with application(
        cluster, folder, "totals", *arguments, parallelism=start, mode="realtime", kind=KIND
    ) as engine:
        observe_batches(engine, 1)
        yield engine


def test_a_rebalance_takes_hold_at_the_next_batch_and_never_restarts_the_query(counting: SparkEngine) -> None:
    before = counting.monitor.run_id
    outcome = counting.apply(plan(counting, key=2))
    assert outcome.status is Status.APPLIED
    assert counting.monitor.run_id == before
    seen = observe_batches(counting, 1).operators
    assert seen["key"].parallelism == len(seen["key"].instances) == 2
    assert seen["in"].processed == seen["key"].processed == seen["total"].processed


def test_instances_without_slots_are_refused_and_the_query_goes_on(counting: SparkEngine) -> None:
    before = counting.monitor.run_id
    outcome = counting.apply(plan(counting, key=6))
    assert outcome.status is Status.FAILED
    assert "8 instances need a slot each, there are 4" in outcome.reason
    observe_batches(counting, 1)
    assert counting.monitor.run_id == before


def test_a_node_comes_and_goes_under_the_running_query(counting: SparkEngine) -> None:
    before = counting.monitor.run_id
    out = counting.apply(plan(counting, nodes=2, key=4))
    assert (out.status, counting.configuration.nodes) == (Status.APPLIED, 2)
    seen = observe_batches(counting, 1)
    places = [instance.node for one in seen.operators.values() for instance in one.instances]
    assert set(places) == {node.name for node in seen.nodes}
    into = counting.apply(plan(counting, nodes=1, key=1))
    assert (into.status, counting.configuration.nodes) == (Status.APPLIED, 1)
    assert counting.monitor.run_id == before
    observe_batches(counting, 1)
    rows = counting.monitor.rows
    assert rows["total"] == rows["key"] == rows["in"] > 0


def test_load_and_backlog_are_what_the_source_was_offered(counting: SparkEngine) -> None:
    def check(window: Observation) -> None:
        seen = window.application
        assert seen.load["in"] == pytest.approx(100, rel=0.15)
        assert seen.backlog is not None and seen.backlog < 200
        assert seen.lag_seconds is not None and seen.lag_seconds < 2

    soon(lambda: observe_batches(counting, 2), check)


def test_the_state_of_an_aggregation_is_refused_beforehand_with_the_reason(counting: SparkEngine) -> None:
    before, batches = counting.monitor.run_id, counting.configuration
    outcome = counting.apply(plan(counting, total=2))
    assert outcome.status is Status.FAILED
    assert "Spark cannot rewrite the state of an aggregation in Real-Time Mode" in outcome.reason
    assert (counting.monitor.run_id, counting.configuration) == (before, batches)
