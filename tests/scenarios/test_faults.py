"""Every fault at every step of every change, on a scripted world: what runs becomes what was decided.

The chaos suite (tests/chaos) does some of them to a real cluster.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from rheostat.engines.spark.engine import SparkEngine
from rheostat.model.decision import Status
from tests.scripted.world import World, application, change, live

STEPS = {
    "out": ("nodes", "executors", "parallelism", "batch", "end"),
    "in": ("parallelism", "batch", "release", "remove", "end"),
    "rescale": ("parallelism", "batch", "end"),
}
SIZES = {"out": (1, 2), "in": (2, 1), "rescale": (2, 2)}  # nodes before and after


def silence(world: World) -> None:
    world.silent_until = world.now + 20.0


def freeze(world: World) -> None:
    world.freeze(20.0)


FAULTS: dict[str, Callable[[World], None]] = {
    "executor": World.kill_executor,
    "node": World.kill_node,
    "driver": World.kill_driver,
    "frozen": freeze,
    "source": silence,
}


def strike_at(engine: SparkEngine, step: str, strike: Callable[[], None]) -> list[str]:
    """Do something once when a step is reached; returns the steps that were reached."""
    reached: list[str] = []

    def hook(name: str) -> None:
        if name == step and step not in reached:
            strike()
        reached.append(name)

    engine._actuator.before_step = hook
    return reached


def check_runs_as_told(engine: SparkEngine, world: World, nodes_are_ours: bool = True) -> None:
    """What the engine says is what there is, and batches go on."""
    told, batches = engine.configuration, len(world.committed)
    live(engine, 5)
    assert engine.configuration == told
    assert len(engine.machines.names()) == told.nodes
    assert len(world.ready()) == world.wanted == told.executors
    assert world.parallelism == told.parallelism
    assert len(world.committed) > batches + 2
    if nodes_are_ours:
        assert world.alive() == list(engine.machines.names())
        assert all(world.nodes[name].settled for name in world.alive())


CASES = [
    (mode, kind, step, fault)
    for mode in ("microbatch", "realtime")
    for kind, steps in STEPS.items()
    for step in steps
    for fault in FAULTS
    if (mode, kind) != ("realtime", "rescale")
]


@pytest.mark.parametrize(("mode", "kind", "step", "fault"), CASES)
def test_after_a_fault_at_any_step_the_application_is_what_was_decided_and_can_be_changed_again(
    mode: str, kind: str, step: str, fault: str, tmp_path: Path
) -> None:
    world = World(tmp_path, mode=mode)
    before, after = SIZES[kind]
    engine = application(world, nodes=before, key=2 * before)
    wished = {"total": 3} if kind == "rescale" else {"key": 2 * after}
    reached = strike_at(engine, step, lambda: FAULTS[fault](world))

    outcome = engine.apply(change(engine, nodes=after, **wished))
    assert step in reached
    assert outcome.status in (Status.APPLIED, Status.FAILED)
    assert outcome.configuration == engine.configuration
    live(engine, 240)
    check_runs_as_told(engine, world)

    again = engine.apply(change(engine, nodes=after, **wished))
    assert again.status in (Status.APPLIED, Status.UNCHANGED), again.reason
    check_runs_as_told(engine, world)
    assert (engine.configuration.nodes, engine.configuration.parallelism) == (
        after, {**outcome.configuration.parallelism, **wished},
    )  # fmt: skip
    if fault not in ("executor", "node"):  # a lost executor takes a query in Real-Time Mode with it
        assert world.deaths == []


def test_a_fault_that_stops_a_change_says_what_was_taken_back(tmp_path: Path) -> None:
    world = World(tmp_path)
    engine = application(world)
    strike_at(engine, "executors", world.kill_node)
    outcome = engine.apply(change(engine, nodes=2, key=4))
    assert outcome.status is Status.FAILED
    assert outcome.reason == "a node ended by itself before its executors were registered; rolled back"
