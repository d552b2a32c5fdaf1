"""What the loop may rely on, whichever engine runs: every adapter of the Engine port passes this suite.

The simulator gets a fresh engine and an hour of virtual time; Spark gets seconds of real time on one
application that the tests hand to each other.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from rheostat.control.ports import Clock, Engine
from rheostat.engines.simulator.engine import Simulator
from rheostat.engines.simulator.settings import Settings
from rheostat.engines.spark.engine import SparkEngine
from rheostat.model.configuration import Configuration, NodeKind
from rheostat.model.decision import Plan, Status
from rheostat.model.observation import Observation
from rheostat.model.topology import Operator, Stream, Topology
from tests.spark.support import application, soon

CHAIN = Topology(
    "chain",
    (Operator("in", 0.0001), Operator("work", 0.002), Operator("out", 0.0005)),
    (Stream("in", "work"), Stream("work", "out", selectivity=2.0)),
)
SMALL = Configuration({"in": 1, "work": 1, "out": 1}, executors=2, nodes=2)
LARGE = Configuration({"in": 1, "work": 3, "out": 2}, executors=3, nodes=3)
LOAD = 300.0


@dataclass(frozen=True)
class Started:
    """An engine that runs the chain in the small configuration, at the beginning of a window."""

    engine: Engine
    clock: Clock
    began: float  # the window did not begin earlier
    span: float  # seconds that make a window worth looking at
    exact: bool  # whether time and costs are virtual, and so exact
    lost: Callable[[], float]  # rows that entered and never came out, beyond those in flight

    def see(
        self, check: Callable[[Observation], None], always: Callable[[Observation], None], span: float
    ) -> None:
        """Check the window of so many seconds; where batches are as long as they are, or a later one."""

        def look() -> Observation:
            self.clock.sleep(span)
            return self.engine.observe()

        soon(look, check, always, looks=1 if self.exact else 12)


def simulated(mode: str) -> Started:
    engine = Simulator(CHAIN, np.full(3_600, LOAD), SMALL, Settings(mode=mode))

    def lost() -> float:
        engine.sleep(600)
        record = engine.record
        waiting = record.backlog[record.steps]
        assert waiting < 30 * LOAD
        return float(record.arrived[record.steps] - record.completed()[-1] - waiting)

    return Started(engine, engine, engine.now(), 60.0, True, lost)


def on_spark(engine: SparkEngine) -> Started:
    if engine.configuration != SMALL:
        assert engine.apply(plan(engine, SMALL)).status is Status.APPLIED
    began = engine.clock.now()
    engine.observe()

    def lost() -> float:
        rows = engine.monitor.rows
        assert rows["in"] > 0
        return abs(rows["work"] - 2 * rows["in"]) + abs(rows["out"] - rows["work"])

    span = 9.0 if engine.model.name == "pipelined" else 6.0  # a batch or more
    return Started(engine, engine.clock, began, span, False, lost)


SIMULATED = [f"simulator-{mode}" for mode in ("pipelined", "staged", "storm")]
SPARK = ["spark-microbatch", "spark-realtime"]


@pytest.fixture(scope="module", params=[*SIMULATED, *SPARK])
def start(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[], Started]]:
    kind, _, mode = request.param.partition("-")
    if kind == "simulator":
        yield lambda: simulated(mode)
        return
    folder: Path = tmp_path_factory.mktemp(mode)
    with application(
        request.getfixturevalue("cluster"),
        folder,
        "chain",
        str(round(LOAD)),
        mode,
        parallelism=SMALL.parallelism,
        mode=mode,
        kind=NodeKind(cores=0.7, slots=2, memory_mb=1024.0),
        nodes=SMALL.nodes,
    ) as engine:
        engine.clock.sleep(5)  # the first batches are cold, and the first test only looks at times
        yield lambda: on_spark(engine)


@pytest.fixture
def started(start: Callable[[], Started]) -> Started:
    return start()


def plan(engine: Engine, target: Configuration) -> Plan:
    changes = target != engine.configuration
    return Plan(1, 0.0, engine.configuration, target, "a test wants it", changes=changes)


def test_an_observation_covers_the_time_since_the_last_one(started: Started) -> None:
    engine, clock = started.engine, started.clock
    began = clock.now()
    clock.sleep(started.span)
    waited = clock.now()
    first = engine.observe()
    assert started.began <= first.start <= began
    assert waited <= first.end <= clock.now()
    clock.sleep(started.span / 2)
    waited = clock.now()
    second = engine.observe()
    assert second.start == first.end
    assert waited <= second.end <= clock.now()


def test_an_observation_names_every_operator_and_node_and_states_the_load(started: Started) -> None:
    def always(seen: Observation) -> None:
        assert set(seen.operators) == {"in", "work", "out"}
        assert len(seen.nodes) == started.engine.configuration.nodes

    def check(seen: Observation) -> None:
        assert seen.application.load["in"] == pytest.approx(LOAD, rel=1e-6 if started.exact else 0.2)
        assert seen.application.throughput == pytest.approx(LOAD, rel=0.25)

    started.see(check, always, started.span)


def test_rows_and_cpu_of_every_operator_are_those_that_flowed(started: Started) -> None:
    engine, clock = started.engine, started.clock
    if started.exact:
        clock.sleep(started.span)
        engine.observe()  # the first window still fills the pipeline
    span = 10 * started.span if started.exact else started.span

    def always(window: Observation) -> None:
        seen = window.operators
        rows = seen["in"].processed
        if not started.exact and rows is None:
            return  # no batch ended
        assert rows is not None
        assert seen["work"].processed == pytest.approx(rows, rel=0.02)
        assert seen["out"].processed == pytest.approx(2 * rows, rel=0.02)
        assert seen["work"].emitted["out"] == pytest.approx(2 * (seen["work"].processed or 0))

    def check(window: Observation) -> None:
        seen = window.operators
        tolerance = 0.02 if started.exact else 0.5  # a window holds whole batches
        assert seen["in"].processed == pytest.approx(span * LOAD, rel=tolerance)
        costs = {name: (seen[name].cpu_seconds or 0) / (seen[name].processed or 1) for name in seen}
        if started.exact:
            assert costs == pytest.approx({"in": 0.0001, "work": 0.002, "out": 0.0005})
        assert 0 < costs["out"] < costs["work"]

    started.see(check, always, span)


def test_a_plan_that_changes_nothing_takes_no_time_and_leaves_the_window_alone(started: Started) -> None:
    engine, clock = started.engine, started.clock
    began = clock.now()
    clock.sleep(started.span / 2)
    waited = clock.now()
    outcome = engine.apply(plan(engine, SMALL))
    assert outcome.status is Status.UNCHANGED
    assert waited <= outcome.started_at == outcome.finished_at <= clock.now()
    clock.sleep(started.span / 2)
    assert started.began <= engine.observe().start <= began


def test_the_window_after_a_change_does_not_mix_two_configurations(started: Started) -> None:
    engine, clock = started.engine, started.clock
    clock.sleep(started.span / 2)
    outcome = engine.apply(plan(engine, replace(SMALL, parallelism={"in": 1, "work": 2, "out": 1})))
    clock.sleep(started.span)
    seen = engine.observe()
    assert seen.start == outcome.finished_at
    assert seen.operators["work"].parallelism == 2


def test_scaling_out_and_back_in_reaches_its_targets_and_loses_and_doubles_no_row(started: Started) -> None:
    engine, clock = started.engine, started.clock
    began = clock.now()
    outcome = engine.apply(plan(engine, LARGE))
    assert outcome.status is Status.APPLIED, outcome.reason
    assert outcome.configuration == engine.configuration == LARGE
    assert began <= outcome.started_at
    assert outcome.started_at + 1 < outcome.finished_at <= clock.now()  # a node had to start
    clock.sleep(started.span)
    seen = engine.observe()
    assert {name: seen.operators[name].parallelism for name in seen.operators} == LARGE.parallelism
    assert len(seen.nodes) == 3
    for target in (SMALL, replace(SMALL, parallelism={"in": 1, "work": 2, "out": 1})):
        clock.sleep(started.span / 2)
        outcome = engine.apply(plan(engine, target))
        assert outcome.status is Status.APPLIED, outcome.reason
        assert engine.configuration == target
    clock.sleep(started.span)
    assert len(engine.observe().nodes) == SMALL.nodes
    assert started.lost() == pytest.approx(0, abs=1e-3)
