"""What the loop may rely on, whichever engine runs: every adapter of the Engine port passes this suite.

An adapter's test module imports everything of this one and has a fixture `started`. The simulator gives each
test a fresh engine in virtual time; Spark gives all the same application, in real time.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from rheostat.control.ports import Clock, Engine
from rheostat.model.configuration import Configuration
from rheostat.model.decision import Plan, Status
from rheostat.model.observation import Observation
from rheostat.model.topology import Operator, Stream, Topology

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
    window: Callable[[], Observation]  # a window that is long enough to measure rates
    measured: Callable[[], Observation]  # the open window, as soon as it has rows of its own
    longest: Callable[[], float]  # seconds of the longest batch of late
    lost: Callable[[], float]  # rows that entered and never came out, beyond those in flight
    restarted: Callable[[], bool]  # whether a query was started again


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


def test_a_window_states_the_load_and_the_rows_and_cpu_of_every_operator(started: Started) -> None:
    window = started.window()
    assert set(window.operators) == {"in", "work", "out"}
    assert len(window.nodes) == started.engine.configuration.nodes
    # The rate source counts whole seconds, and a window on Spark holds ten seconds of batches or more.
    assert window.application.load["in"] == pytest.approx(LOAD, rel=1e-6 if started.exact else 0.15)
    # What ends in a window may have begun before it: the longest batch blurs its beginning and its end.
    blurred = 0.05 if started.exact else 0.1 + started.longest() / 12.0
    assert window.application.throughput == pytest.approx(LOAD, rel=blurred)
    rows = window.operators["in"].processed
    assert rows is not None and rows > 0
    assert window.operators["work"].processed == pytest.approx(rows, rel=0.02)
    assert window.operators["out"].processed == pytest.approx(2 * rows, rel=0.02)
    assert window.operators["work"].emitted["out"] == pytest.approx(
        2 * (window.operators["work"].processed or 0)
    )
    costs = {name: (one.cpu_seconds or 0) / (one.processed or 1) for name, one in window.operators.items()}
    if started.exact:
        assert costs == pytest.approx({"in": 0.0001, "work": 0.002, "out": 0.0005})
    assert 0 < costs["out"] < costs["work"]


def test_a_plan_that_changes_nothing_takes_no_time_and_leaves_the_window_alone(started: Started) -> None:
    engine, clock = started.engine, started.clock
    began = clock.now()
    outcome = engine.apply(plan(engine, SMALL))
    assert outcome.status is Status.UNCHANGED
    assert began <= outcome.started_at == outcome.finished_at <= clock.now()
    clock.sleep(1.0)
    assert started.began <= engine.observe().start <= began


def test_the_window_after_a_change_does_not_mix_two_configurations(started: Started) -> None:
    engine = started.engine
    outcome = engine.apply(plan(engine, replace(SMALL, parallelism={"in": 1, "work": 2, "out": 1})))
    assert outcome.status is Status.APPLIED, outcome.reason
    seen = started.measured()
    assert seen.start == outcome.finished_at
    work = seen.operators["work"]
    assert work.parallelism == 2
    assert work.processed is not None and work.processed > 0


def test_scaling_out_and_back_in_reaches_its_targets_and_loses_and_doubles_no_row(started: Started) -> None:
    engine, clock = started.engine, started.clock
    began = clock.now()
    outcome = engine.apply(plan(engine, LARGE))
    assert outcome.status is Status.APPLIED, outcome.reason
    assert outcome.configuration == engine.configuration == LARGE
    assert began <= outcome.started_at
    assert outcome.started_at + 1 < outcome.finished_at <= clock.now()  # a node had to start
    seen = started.measured()
    assert {name: seen.operators[name].parallelism for name in seen.operators} == LARGE.parallelism
    assert all(measures.processed for measures in seen.operators.values())
    assert len(seen.nodes) == 3
    outcome = engine.apply(plan(engine, SMALL))
    assert outcome.status is Status.APPLIED, outcome.reason
    assert engine.configuration == SMALL
    seen = started.measured()
    assert {name: seen.operators[name].parallelism for name in seen.operators} == SMALL.parallelism
    assert len(seen.nodes) == SMALL.nodes
    assert not started.restarted()
    assert started.lost() == pytest.approx(0, abs=1e-3)
