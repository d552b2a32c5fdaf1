"""What the loop may rely on, whichever engine runs: every adapter of the Engine port passes this suite."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from rheostat.control.ports import Clock, Engine
from rheostat.engines.simulator.engine import Simulator
from rheostat.engines.simulator.settings import Settings
from rheostat.model.configuration import Configuration
from rheostat.model.decision import Plan, Status
from rheostat.model.topology import Operator, Stream, Topology

CHAIN = Topology(
    "chain",
    (Operator("in", 0.0001), Operator("work", 0.002), Operator("out", 0.0005)),
    (Stream("in", "work"), Stream("work", "out", selectivity=2.0)),
)
SMALL = Configuration({"in": 1, "work": 1, "out": 1}, executors=2, nodes=2)
LARGE = Configuration({"in": 1, "work": 3, "out": 2}, executors=3, nodes=3)
LOAD = 300.0

Started = tuple[Engine, Clock]


def simulated(mode: str) -> Callable[[], Started]:
    def start() -> Started:
        engine = Simulator(CHAIN, np.full(3_600, LOAD), SMALL, Settings(mode=mode))
        return engine, engine

    return start


ENGINES = {f"simulator-{mode}": simulated(mode) for mode in ("pipelined", "staged", "storm")}


@pytest.fixture(params=list(ENGINES.values()), ids=list(ENGINES))
def started(request: pytest.FixtureRequest) -> Started:
    start: Callable[[], Started] = request.param
    return start()


def plan(engine: Engine, target: Configuration) -> Plan:
    changes = target != engine.configuration
    return Plan(1, 0.0, engine.configuration, target, "a test wants it", changes=changes)


def test_an_observation_covers_the_time_since_the_last_one(started: Started) -> None:
    engine, clock = started
    clock.sleep(60)
    first = engine.observe()
    clock.sleep(30)
    second = engine.observe()
    assert (first.start, first.end) == (0, 60)
    assert (second.start, second.end) == (60, 90)


def test_an_observation_names_every_operator_and_node_and_states_the_load(started: Started) -> None:
    engine, clock = started
    clock.sleep(60)
    seen = engine.observe()
    assert set(seen.operators) == {"in", "work", "out"}
    assert len(seen.nodes) == engine.configuration.nodes
    assert seen.application.load["in"] == pytest.approx(LOAD)
    assert seen.application.throughput == pytest.approx(LOAD, rel=0.2)


def test_rows_and_cpu_of_every_operator_are_those_that_flowed(started: Started) -> None:
    engine, clock = started
    clock.sleep(60)
    engine.observe()  # the first window still fills the pipeline
    clock.sleep(600)
    seen = engine.observe().operators
    assert seen["in"].processed == pytest.approx(600 * LOAD, rel=0.02)
    assert seen["out"].processed == pytest.approx(2 * 600 * LOAD, rel=0.02)
    assert seen["work"].emitted["out"] == pytest.approx(2 * (seen["work"].processed or 0))
    for name, cost in (("in", 0.0001), ("work", 0.002), ("out", 0.0005)):
        assert (seen[name].cpu_seconds or 0) / (seen[name].processed or 1) == pytest.approx(cost)


def test_a_plan_that_changes_nothing_takes_no_time_and_leaves_the_window_alone(started: Started) -> None:
    engine, clock = started
    clock.sleep(30)
    outcome = engine.apply(plan(engine, SMALL))
    assert outcome.status is Status.UNCHANGED
    assert (outcome.started_at, outcome.finished_at, clock.now()) == (30, 30, 30)
    clock.sleep(30)
    assert engine.observe().start == 0


def test_applying_a_plan_reaches_its_target_and_says_how_long_it_took(started: Started) -> None:
    engine, clock = started
    clock.sleep(30)
    outcome = engine.apply(plan(engine, LARGE))
    assert outcome.status is Status.APPLIED
    assert outcome.configuration == engine.configuration == LARGE
    assert outcome.started_at == 30
    assert outcome.finished_at == clock.now() > 30  # a node had to start
    clock.sleep(60)
    seen = engine.observe()
    assert {name: measures.parallelism for name, measures in seen.operators.items()} == dict(
        LARGE.parallelism
    )
    assert len(seen.nodes) == 3


def test_the_window_after_a_change_does_not_mix_two_configurations(started: Started) -> None:
    engine, clock = started
    clock.sleep(30)
    outcome = engine.apply(plan(engine, LARGE))
    clock.sleep(30)
    assert engine.observe().start == outcome.finished_at


def test_scaling_out_and_back_in_returns_to_where_it_was(started: Started) -> None:
    engine, clock = started
    engine.apply(plan(engine, LARGE))
    clock.sleep(30)
    outcome = engine.apply(plan(engine, SMALL))
    assert outcome.status is Status.APPLIED
    assert engine.configuration == SMALL
    clock.sleep(30)
    assert len(engine.observe().nodes) == SMALL.nodes


def test_no_row_is_lost_or_doubled_by_scaling(started: Started) -> None:
    engine, clock = started
    processed = 0.0
    for target in (LARGE, SMALL, replace(LARGE, parallelism={"in": 2, "work": 2, "out": 2})):
        clock.sleep(60)
        processed += engine.observe().operators["out"].processed or 0.0
        engine.apply(plan(engine, target))
    clock.sleep(clock.now() % 60 + 600)
    assert isinstance(engine, Simulator)
    record = engine.record
    done = record.completed()[-1]
    assert done + record.backlog[record.steps] == pytest.approx(record.arrived[record.steps])
    assert record.backlog[record.steps] < 30 * LOAD
