"""The mechanisms in micro-batch, on a real cluster."""

from collections.abc import Collection

import pytest

from rheostat.control.loop import Loop
from rheostat.engines.spark.engine import SparkEngine
from rheostat.model.configuration import Bounds
from rheostat.model.decision import Outcome, Plan, Status
from rheostat.model.observation import Observation
from rheostat.policies.registry import available, build
from tests.spark.controllers import eventually
from tests.spark.shared import Shared, check_instances, check_line
from tests.spark.support import observe_batches, observe_span, plan


def test_a_rebalance_takes_effect_at_the_next_batch_and_never_restarts_the_query(shared: Shared) -> None:
    engine = shared.at(nodes=2, work=2, out=2)
    before = engine.monitor.run_id
    outcome = engine.apply(plan(engine, work=4, out=3))
    assert (outcome.status, outcome.pause_seconds) == (Status.APPLIED, 0)
    observed = observe_batches(engine, 2)
    recent = (batch for batch in engine.monitor.recent if not batch.idle)
    effective = next(batch for batch in recent if batch.started >= outcome.finished_at)
    assert [stage.tasks for stage in effective.stages] == [1, 4, 3]
    assert engine.monitor.run_id == before
    result = {name: measures.parallelism for name, measures in observed.operators.items()}
    assert result == engine.configuration.parallelism


def test_a_batch_that_begins_before_a_new_node_is_there_has_tasks_for_it(
    shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = shared.at(nodes=1, work=2)
    before, early = engine.monitor.run_id, list[int]()

    def look(step: str) -> None:
        if step == "nodes":
            ordered = engine.now()
            early.extend(eventually(lambda: tasks_of_work(ordered)))

    def tasks_of_work(since: float) -> list[int]:
        engine.poll()
        return [b.stages[1].tasks for b in engine.monitor.recent if b.started >= since and not b.idle]

    monkeypatch.setattr(engine._actuator, "before_step", look)
    out = engine.apply(plan(engine, nodes=2, work=4))
    assert set(early) == {4}
    assert (out.status, engine.configuration.nodes, len(engine.monitor.executors)) == (Status.APPLIED, 2, 2)
    observed = observe_batches(engine, 3)
    assert [node.executors for node in observed.nodes] == [1, 1]
    assert all(node.cpu is not None and node.memory for node in observed.nodes)
    assert (
        sum((node.instances or {}).get("work", 0) for node in observed.nodes) == 4
    )  # at once, on four slots
    assert engine.monitor.run_id == before


def test_the_batch_its_phases_and_the_lag_are_measured(shared: Shared) -> None:
    observed = observe_batches(shared.at(nodes=2), 3).application
    assert observed.batches is not None and observed.batches >= 3
    assert observed.batch_seconds is not None and observed.batch_seconds == pytest.approx(
        observed.batch_parts["triggerExecution"], rel=0.01
    )
    assert observed.lag_seconds is not None and observed.lag_seconds > observed.batch_parts["addBatch"]


class Seen:
    """An engine whose window was observed already, so that many policies can look at the same one."""

    def __init__(self, engine: SparkEngine, observation: Observation) -> None:
        self.topology, self.kinds, self.model = engine.topology, engine.kinds, engine.model
        self.configuration, self._observation = engine.configuration, observation
        self.alarmed, self.plans_state = False, True

    def rewrite_refusal(self, operators: Collection[str]) -> str | None:
        raise AssertionError("a plan's parallelism changes the state")

    def observe(self) -> Observation:
        return self._observation

    def apply(self, plan: Plan) -> Outcome:
        raise AssertionError("a dry run applies nothing")


def test_every_policy_of_the_core_decides_on_what_spark_measured(shared: Shared) -> None:
    engine = shared.at(nodes=2)
    observed = Seen(engine, observe_batches(engine, 4))
    for name in available():
        turn = Loop(observed, engine.clock, build(name), Bounds(1, 2), dry_run=True).turn()
        assert turn.plan.alert is None, (name, turn.plan.alert)
        assert "not measured" not in turn.plan.reason, (name, turn.plan.reason)


def test_cpu_shares_are_those_of_the_known_costs_and_a_constant_load_is_a_flat_line(shared: Shared) -> None:
    observed = observe_span(shared.at(nodes=2, work=2, out=2), 12.0)
    check_line(observed)
    assert observed.operators["in"].waiting is None  # the rate source does not tell what it holds
    cpu = {name: observed.operators[name].cpu_seconds or 0.0 for name in ("work", "out")}
    # 4,000 rounds of a hash for each row against 200 for each of two, and what a task costs by itself.
    share = cpu["work"] / sum(cpu.values())
    assert 0.7 < share < 4_000 / 4_400 + 0.02


def test_the_instances_of_an_operator_share_its_rows_and_cpu_on_their_nodes(shared: Shared) -> None:
    check_instances(observe_batches(shared.at(nodes=2, work=2, out=2), 3))
