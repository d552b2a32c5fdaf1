"""What is lost on a real cluster while an application runs; the order of steps is in tests/scenarios."""

import os
import signal

import pytest

from rheostat.model.configuration import NodeKind
from rheostat.model.decision import Status
from rheostat.services.cleanup_process import members
from rheostat.services.local_cluster import LocalCluster, Worker
from tests.spark.controllers import eventually
from tests.spark.shared import Shared
from tests.spark.support import executors_on, names, observe_batches, plan


def test_a_worker_that_does_not_register_in_time_is_removed(
    totals: Shared, cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = totals.at(nodes=1, key=2)
    added: list[Worker] = []
    add = cluster.add

    def frozen(kind: NodeKind) -> Worker:
        added.append(add(kind))
        os.killpg(added[-1].process.pid, signal.SIGSTOP)
        return added[-1]

    monkeypatch.setattr(cluster, "add", frozen)
    monkeypatch.setattr(cluster, "_start_seconds", 1.0)
    before, run = engine.configuration, engine.monitor.run_id
    outcome = engine.apply(plan(engine, nodes=2, key=4))
    assert outcome.status is Status.FAILED
    assert f"{added[0].name} was not ready within 1 s" in outcome.reason
    assert outcome.configuration == engine.configuration == before
    assert members(added[0].process.pid) == []
    assert added[0].group is None or not added[0].group.path.exists()
    observed = observe_batches(engine, 1)
    assert observed.operators["key"].parallelism == 2
    assert engine.monitor.run_id == run


def test_an_executor_that_dies_while_the_query_runs_is_replaced_and_both_are_reported(
    totals: Shared, cluster: LocalCluster
) -> None:
    engine = totals.at(nodes=1)
    run, before = engine.monitor.run_id, {executor.id for executor in engine.monitor.executors}
    host = next(node for node in cluster.workers() if node.name == names(engine)[0])
    events = list(engine.observe().events)
    executors_on(host)[0].kill()

    def replaced() -> bool:
        events.extend(engine.observe().events)
        now = {executor.id for executor in engine.monitor.executors}
        kinds = {event.kind for event in events}  # told later than Spark counts it
        return {"executor added", "executor removed"} <= kinds and len(now) == 1 and not now & before

    eventually(replaced, "another executor, and word of it")
    assert any(event.kind == "executor removed" and "is gone" in event.text for event in events)
    observe_batches(engine, 2)
    assert engine.monitor.run_id == run


def test_a_node_that_ends_by_itself_is_replaced(totals: Shared, cluster: LocalCluster) -> None:
    engine = totals.at(nodes=1)
    before, (lost,) = engine.configuration, names(engine)
    next(node for node in cluster.workers() if node.name == lost).process.kill()
    events = list(engine.observe().events)

    def replaced() -> bool:
        events.extend(engine.observe().events)
        return any("replaced what was lost" in event.text for event in events)

    eventually(replaced, "another node, with its executors")
    assert any(event.text == f"node {lost} ended by itself" for event in events)
    (node,) = names(engine)
    assert node != lost and node in engine.monitor.nodes_of_executors().values()
    assert engine.configuration == before
    observe_batches(engine, 2)
