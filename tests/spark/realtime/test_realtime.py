"""The mechanisms in Real-Time Mode, where every instance holds a slot and a query that lacks one dies."""

from rheostat.model.decision import Status
from tests.spark.shared import Shared, check_instances
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


def test_the_instances_of_an_operator_share_its_rows_and_cpu_on_their_nodes(shared: Shared) -> None:
    check_instances(observe_batches(shared.at(nodes=2, work=2, out=1), 2))
