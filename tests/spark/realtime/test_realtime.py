"""The mechanisms in Real-Time Mode, where every instance holds a slot and a query that lacks one dies."""

import pytest

from rheostat.model.decision import Status
from tests.spark.shared import CHAIN_LOAD, Shared, check_instances, check_line
from tests.spark.support import observe_batches, plan


def test_a_rebalance_takes_effect_at_the_next_batch_and_never_restarts_the_query(shared: Shared) -> None:
    engine = shared.at(nodes=2, work=1, out=1)
    before = engine.monitor.run_id
    outcome = engine.apply(plan(engine, work=2))
    assert (outcome.status, engine.monitor.run_id) == (Status.APPLIED, before)
    observed = observe_batches(engine, 1)
    work = observed.operators["work"]
    assert work.parallelism == len(work.instances) == 2
    assert sum(node.assigned for node in observed.nodes) == 4
    places = {instance.node for item in observed.operators.values() for instance in item.instances}
    assert places == {node.name for node in observed.nodes if node.assigned}


def test_instances_without_slots_are_refused_and_the_query_goes_on(shared: Shared) -> None:
    engine = shared.at(nodes=2, work=1, out=1)
    before = engine.monitor.run_id
    outcome = engine.apply(plan(engine, work=6))
    assert outcome.status is Status.FAILED
    assert "8 instances need a slot each, there are 4" in outcome.reason
    observe_batches(engine, 1)
    assert engine.monitor.run_id == before


def test_instances_share_rows_and_cpu_and_the_source_tells_what_arrived_and_what_waits(
    shared: Shared,
) -> None:
    observed = observe_batches(shared.at(nodes=2, work=2, out=1), 2)
    check_instances(observed)
    check_line(observed)
    source = observed.operators["in"]
    assert source.received == pytest.approx(source.processed, rel=0.2)
    assert source.waiting is not None and source.waiting < 2 * CHAIN_LOAD  # what comes between two batches
