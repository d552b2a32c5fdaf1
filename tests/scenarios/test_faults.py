"""Every fault at every step of every change, on a scripted world: what runs becomes what was decided.

The chaos suite (tests/chaos) does some of them to a real cluster.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from rheostat.engines.spark.engine import SparkEngine
from rheostat.model.configuration import NodeKind
from rheostat.model.decision import Status
from tests.scripted.world import KIND, World, application, change, live, names

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


FAULTS = ("executor", "node", "driver", "frozen", "source")


def strike(world: World, fault: str, which: int = -1) -> None:
    """Do it, to this one of the nodes or executors."""
    if fault == "executor":
        world.kill_executor(which)
    elif fault == "node":
        world.kill_node(which)
    else:
        {"driver": World.kill_driver, "frozen": freeze, "source": silence}[fault](world)


def strike_at(engine: SparkEngine, step: str, blow: Callable[[], None]) -> list[str]:
    """Do something once when a step is reached; returns the steps that were reached."""
    reached: list[str] = []

    def hook(name: str) -> None:
        if name == step and step not in reached:
            blow()
        reached.append(name)

    engine._actuator.before_step = hook
    return reached


def check_runs_as_reported(engine: SparkEngine, world: World, nodes_are_ours: bool = True) -> None:
    """What the engine says is what there is, and batches go on."""
    reported, batches = engine.configuration, len(world.committed)
    live(engine, 5)
    assert engine.configuration == reported
    assert len(names(engine)) == reported.nodes
    assert len(world.ready()) == world.wanted == reported.executors
    assert world.parallelism == reported.parallelism
    assert len(world.committed) > batches + 2
    if nodes_are_ours:
        assert world.alive() == list(names(engine))
        assert all(world.nodes[name].settled for name in world.alive())


CASES = [
    (mode, kind, step, fault)
    for mode in ("microbatch", "realtime")
    for kind, steps in STEPS.items()
    for step in steps
    for fault in FAULTS
    if (mode, kind) != ("realtime", "rescale")
]


@dataclass(frozen=True)
class Setting:
    """Around what a change is disturbed."""

    kind: NodeKind = KIND
    owned: bool = True  # else the nodes are those of a cluster of others
    watched: bool = False  # by a view that polls, also while a change is under way
    which: int = -1  # node or executor is struck: the youngest


SETTINGS = {
    "plain": Setting(),
    "watched": Setting(watched=True),
    "two executors a node": Setting(kind=replace(KIND, executors=2)),
    "a cluster of others": Setting(owned=False),
    "the oldest is struck": Setting(which=0),
}


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize(("mode", "kind", "step", "fault"), CASES)
def test_after_a_fault_at_any_step_the_application_is_as_planned_and_can_be_changed_again(
    mode: str, kind: str, step: str, fault: str, setting: Setting, tmp_path: Path
) -> None:
    world = World(tmp_path, mode=mode, kind=setting.kind, owned=setting.owned)
    for _ in range(0 if setting.owned else 3):
        world.add_node(world.kind)
    before, after = SIZES[kind]
    engine = application(world, nodes=before, key=2 * before, watched=setting.watched)
    wished = {"total": 3} if kind == "rescale" else {"key": 2 * after}
    reached = strike_at(engine, step, lambda: strike(world, fault, setting.which))

    had = engine.configuration
    outcome = engine.apply(change(engine, nodes=after, **wished))
    assert step in reached or (step, setting.owned) == ("nodes", False)  # there, none has to be ordered
    assert outcome.configuration == engine.configuration
    if outcome.status is Status.APPLIED:
        assert outcome.configuration.parallelism == {**had.parallelism, **wished}
    else:
        assert outcome.status is Status.FAILED
        back = outcome.configuration.parallelism == had.parallelism
        assert "rolled back" not in outcome.reason or back
    live(engine, 240)
    check_runs_as_reported(engine, world, setting.owned)

    again = engine.apply(change(engine, nodes=after, **wished))
    assert again.status in (Status.APPLIED, Status.UNCHANGED), again.reason
    check_runs_as_reported(engine, world, setting.owned)
    assert engine.configuration.nodes == after
    assert engine.configuration.parallelism == {**outcome.configuration.parallelism, **wished}
    if fault not in ("executor", "node"):  # a lost executor takes a query in Real-Time Mode with it
        assert world.deaths == []


def test_a_fault_that_stops_a_change_says_what_was_rolled_back(tmp_path: Path) -> None:
    world = World(tmp_path)
    engine = application(world)
    strike_at(engine, "executors", world.kill_node)
    outcome = engine.apply(change(engine, nodes=2, key=4))
    assert outcome.status is Status.FAILED
    assert outcome.reason == "a node ended by itself before its executors were registered; rolled back"


def test_a_roll_back_that_failed_is_not_reported_as_done(tmp_path: Path) -> None:
    world = World(tmp_path)
    engine = application(world)
    strike_at(engine, "parallelism", world.kill_driver)
    outcome = engine.apply(change(engine, nodes=2, key=4))
    assert outcome.status is Status.FAILED
    assert "rolled back" not in outcome.reason


def test_if_a_node_that_was_to_stay_ends_another_stays_instead(tmp_path: Path) -> None:
    world = World(tmp_path)
    engine = application(world, nodes=2, key=4)
    strike_at(engine, "release", lambda: world.kill_node(0))
    engine.apply(change(engine, nodes=1, key=2))
    assert names(engine) == ("n2",)
    assert "remove n2" not in world.asked


def test_a_scale_in_that_fails_half_way_reports_the_parallelism_that_runs(tmp_path: Path) -> None:
    world = World(tmp_path, mode="realtime")
    engine = application(world, nodes=2, key=4)

    def fall_silent() -> None:  # no batch ends, so no executor leaves
        world.silent_until = world.now + 1000

    strike_at(engine, "release", fall_silent)
    outcome = engine.apply(change(engine, nodes=1, key=2))
    assert outcome.status is Status.FAILED
    assert outcome.configuration.parallelism["key"] == world.parallelism["key"] == 2


def test_state_that_a_driver_rewrote_before_it_died_is_reported(tmp_path: Path) -> None:
    world = World(tmp_path)
    engine = application(world, nodes=2, key=4)

    def rewrite_and_die() -> None:
        world.state = 3
        world.kill_driver()

    world.on_rescale = rewrite_and_die
    engine.apply(change(engine, total=3))
    world.on_rescale = lambda: None
    live(engine, 100)
    check_runs_as_reported(engine, world)
    assert engine.configuration.parallelism["total"] == 3
