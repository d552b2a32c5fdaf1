"""The mechanisms in micro-batch, on a real cluster: one application that all tests of this file change."""

import json
from collections.abc import Iterator

import pytest

from rheostat.control.loop import Loop
from rheostat.engines.spark.engine import SparkEngine
from rheostat.infrastructure.local import LocalProvider
from rheostat.model.configuration import Bounds
from rheostat.model.decision import Outcome, Plan, Status
from rheostat.model.observation import Observation
from rheostat.policies.registry import available, build

from .controllers import eventually
from .support import application, observe_batches, plan, soon

RATE = 200  # rows/s
ROUNDS = {"a": 4_000, "b": 4_000, "c": 2_000, "d": 3_000, "e": 2_000}  # of a hash, per row


@pytest.fixture(scope="module")
def five(cluster: LocalProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkEngine]:
    operators, arguments = dict.fromkeys("abcde", 2), (str(RATE), json.dumps(ROUNDS))
    folder = tmp_path_factory.mktemp("five")
    with application(cluster, folder, "five", *arguments, parallelism=operators) as engine:
        observe_batches(engine, 2)
        yield engine


def test_rows_of_every_operator_are_exact(five: SparkEngine) -> None:
    seen = observe_batches(five, 3).operators
    rows = seen["in"].processed
    assert rows is not None and rows > 0
    assert seen["in"].emitted["a"] == seen["a"].processed == seen["b"].processed == rows
    assert seen["c"].processed == rows * 3 / 4  # b keeps three of four
    assert seen["d"].processed == seen["e"].processed == rows * 3 / 2  # c makes two of one


def test_a_rebalance_takes_hold_at_the_next_batch_and_never_restarts_the_query(five: SparkEngine) -> None:
    before = five.monitor.run_id
    outcome = five.apply(plan(five, c=4, d=3))
    assert outcome.status is Status.APPLIED
    assert outcome.pause_seconds == 0
    seen = observe_batches(five, 2)
    recent = (batch for batch in five.monitor.recent if not batch.idle)
    effective = next(batch for batch in recent if batch.started >= outcome.finished_at)
    assert [stage.tasks for stage in effective.stages] == [1, 2, 2, 4, 3, 2]
    assert five.monitor.run_id == before
    assert {
        name: measures.parallelism for name, measures in seen.operators.items()
    } == five.configuration.parallelism


def test_a_node_comes_and_goes_under_the_running_query(
    five: SparkEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, early = five.monitor.run_id, list[int]()

    def look(step: str) -> None:
        if step == "nodes":
            ordered = five.now()
            early.extend(eventually(lambda: tasks_of_a(ordered)))

    def tasks_of_a(since: float) -> list[int]:
        five.poll()
        return [b.stages[1].tasks for b in five.monitor.recent if b.started >= since and not b.idle]

    monkeypatch.setattr(five._actuator, "before_step", look)
    out = five.apply(plan(five, nodes=2, a=4))
    assert set(early) == {4}  # a batch that begins before the node is there has tasks for it
    assert (out.status, five.configuration.nodes, len(five.monitor.executors)) == (Status.APPLIED, 2, 2)
    seen = observe_batches(five, 3)
    assert [node.executors for node in seen.nodes] == [1, 1]
    assert all(node.cpu is not None and node.memory for node in seen.nodes)
    into = five.apply(plan(five, nodes=1, a=2, c=2))
    assert (into.status, five.configuration.nodes, len(five.monitor.executors)) == (Status.APPLIED, 1, 1)
    assert five.monitor.run_id == before
    rows = five.monitor.rows
    assert (
        rows["e"] == rows["d"] == rows["c"] == 2 * rows["b"]
    )  # whatever happened, none lost and none doubled
    assert rows["a"] == rows["in"]


def test_the_batch_and_its_parts_are_told(five: SparkEngine) -> None:
    def always(window: Observation) -> None:
        seen = window.application
        assert seen.batches is not None and seen.batches >= 3
        assert seen.batch_seconds == pytest.approx(seen.batch_parts["triggerExecution"], rel=0.01)
        assert seen.lag_seconds is not None and seen.lag_seconds > 0

    def check(window: Observation) -> None:
        assert window.application.load["in"] == pytest.approx(RATE, rel=0.2)
        assert window.application.throughput == pytest.approx(RATE, rel=0.3)

    soon(lambda: observe_batches(five, 3), check, always)


class Seen:
    """An engine whose window was observed already, so that many policies can look at the same one."""

    def __init__(self, engine: SparkEngine, observation: Observation) -> None:
        self.topology, self.kinds, self.model = engine.topology, engine.kinds, engine.model
        self.configuration, self._observation = engine.configuration, observation

    def observe(self) -> Observation:
        return self._observation

    def apply(self, plan: Plan) -> Outcome:
        raise AssertionError("a dry run applies nothing")


def test_every_policy_of_the_core_decides_on_what_spark_measured(five: SparkEngine) -> None:
    seen = Seen(five, observe_batches(five, 4))
    for name in available():
        turn = Loop(seen, five.clock, build(name), Bounds(1, 2), dry_run=True).turn()
        assert turn.plan.alert is None, (name, turn.plan.alert)
        assert "not measured" not in turn.plan.reason, (name, turn.plan.reason)


def test_cpu_shares_are_those_of_the_known_costs(five: SparkEngine) -> None:
    worked_on = {"a": 1.0, "b": 0.75, "c": 1.5, "d": 1.5, "e": 1.5}  # rows, per row of the source
    rounds = {name: ROUNDS[name] * worked_on[name] for name in ROUNDS}
    expected = {name: work / sum(rounds.values()) for name, work in rounds.items()}

    def check(seen: Observation) -> None:
        cpu = {name: seen.operators[name].cpu_seconds or 0.0 for name in ROUNDS}
        shares = {name: spent / sum(cpu.values()) for name, spent in cpu.items()}
        assert shares == pytest.approx(expected, rel=0.1)

    soon(lambda: observe_batches(five, 6), check)
