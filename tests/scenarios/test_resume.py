"""A controller that is killed at any step of a change is resumed by the next one, on a scripted world."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from rheostat.engines.spark.driver_process import DriverProcess
from rheostat.engines.spark.spec import Spec
from rheostat.journal.store import Journal
from rheostat.model.configuration import Bounds
from rheostat.model.decision import Proposal
from rheostat.policies.base import Info, Memory, Policy, Situation, wish
from rheostat.run.composition import Running, take_control
from rheostat.run.heartbeat import Heartbeat
from rheostat.run.order import Order
from tests.scripted.world import Clock, Driver, Nodes, World, live

from .test_faults import STEPS, check_runs_as_reported, strike_at


class Killed(BaseException):
    """SIGKILL: nothing of the controller runs any more."""


@dataclass(frozen=True)
class Wishes(Policy):
    """Wishes what the test says, and counts how often it was asked."""

    info = Info("wishes", "all", "reactive", "tests")
    period_seconds: float = 5.0
    wanted: dict[str, Any] = field(default_factory=dict)

    def propose(self, situation: Situation, memory: Memory) -> tuple[Proposal, Memory]:
        now, wanted = situation.configuration, dict(self.wanted)
        nodes = wanted.pop("nodes", now.nodes)
        asked = {"asked": memory.get("asked", 0) + 1}
        return wish(situation, {**now.parallelism, **wanted}, "a test wants it", nodes=nodes), asked


def controller(world: World, policy: Wishes, resume: bool = False) -> Running:
    """Take control of a world as `rheostat run` does; on nodes of its own it starts everything anew."""
    order = Order(
        "app", Path("app.py"), policy, "wishes", world.folder, mode=world.mode, kind=world.kind,
        bounds=Bounds(1, 3), resume=resume,
    )  # fmt: skip
    journal = Journal(world.folder / "journal.sqlite")
    last, machines = journal.last(), Nodes(world)
    spec = Spec("app", "app.py", Nodes.url, str(world.folder), str(world.folder / "s"), "c", mode=world.mode)

    def start(new: Spec) -> DriverProcess:
        return cast(DriverProcess, Driver(world, new))

    machines.add(last.outcome.configuration.nodes if last else 1)
    link = (
        cast(DriverProcess, Driver(world, spec))
        if not world.drivers
        else cast(DriverProcess, Attached(world, spec))
    )
    return take_control(order, journal, Clock(world), 0.0, machines, link, start, Heartbeat())


class Attached(Driver):
    """A driver that runs already."""

    def __init__(self, world: World, spec: Spec) -> None:
        self.world, self.spec, self.hangs = world, spec, False


def settle(run: Running, wanted: Mapping[str, int]) -> None:
    """Control until what runs is what the policy wishes; no longer than ten minutes."""
    for turn in run.turns(run.clock.now() + 600):
        now = turn.outcome.configuration
        if {"nodes": now.nodes, **now.parallelism}.items() >= wanted.items() and not turn.plan.changes:
            return
    raise AssertionError(f"not {wanted}: {run.engine.configuration}")


WISHED: dict[str, tuple[dict[str, int], dict[str, int]]] = {
    "out": ({"nodes": 1, "key": 2}, {"nodes": 2, "key": 4}),
    "in": ({"nodes": 2, "key": 4}, {"nodes": 1, "key": 2}),
    "rescale": ({"nodes": 2, "total": 2}, {"nodes": 2, "total": 3}),
}
CASES = [
    (mode, owned, kind, step)
    for mode in ("microbatch", "realtime")
    for owned in (True, False)
    for kind, steps in STEPS.items()
    for step in steps
    if (mode, kind) != ("realtime", "rescale") and (owned or step != "nodes" or kind != "out")
]


@pytest.mark.parametrize(("mode", "owned", "kind", "step"), CASES)
def test_a_controller_killed_at_any_step_is_resumed_and_finishes_the_change(
    mode: str, owned: bool, kind: str, step: str, tmp_path: Path
) -> None:
    world = World(tmp_path, mode=mode, owned=owned, state=1 if mode == "realtime" else 2)
    for _ in range(0 if owned else 3):
        world.add_node()
    before, after = WISHED[kind]
    policy = Wishes(wanted=dict(before))
    run = controller(world, policy)
    settle(run, before)

    strike_at(run.engine, step, kill_the_controller)
    policy.wanted.update(after)
    with pytest.raises(Killed):
        settle(run, after)
    asked, turns = run.loop.memory["asked"], run.loop.turns
    run.journal._db.close()  # as a process that is killed leaves it
    if owned:  # whoever keeps the run's processes ends them
        world.kill_driver()
        world.nodes.clear()
    committed = len(world.committed)

    again = controller(world, policy, resume=True)
    settle(again, after)
    live(again.engine, 30)
    check_runs_as_reported(again.engine, world, nodes_are_ours=owned)
    assert again.loop.memory["asked"] >= asked - 1 and again.loop.turns >= turns
    assert len(world.committed) > committed
    assert [event.kind for event in again.journal.events() if event.kind in ("started", "resumed")] == [
        "started", "resumed",
    ]  # fmt: skip
    if not owned:
        assert world.deaths == []  # the driver ran on
    again.journal.close()


def kill_the_controller() -> None:
    raise Killed
