"""A controller that is killed at any step of a change is resumed by the next one, on a scripted world."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest

from rheostat.control.guards import Guards
from rheostat.control.turn import Decision
from rheostat.engines.spark.driver_process import DriverProcess
from rheostat.engines.spark.engine import SparkEngine
from rheostat.engines.spark.spec import Spec
from rheostat.journal.explanation import explain
from rheostat.journal.store import Journal
from rheostat.model.configuration import Bounds
from rheostat.model.decision import Placement, Proposal, Status
from rheostat.policies.base import Info, Memory, Policy, Situation, wish
from rheostat.providers.simulated import SimulatedProvider
from rheostat.run.composition import Running, last_configuration, last_places, take_control
from rheostat.run.heartbeat import Heartbeat
from rheostat.run.order import Order
from rheostat.run.site import start_nodes
from tests.journal.samples import turns
from tests.scripted.world import MASTER, Clock, Driver, Nodes, World, live

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


def controller(world: World, policy: Wishes, resume: bool = False, guards: Guards | None = None) -> Running:
    """Take control of a world as `rheostat run` does; on nodes of its own it starts everything anew."""
    order = Order(
        "app", Path("app.py"), policy, "wishes", world.folder, mode=world.mode, kinds=(world.kind,),
        bounds=Bounds(1, 3), guards=guards or Guards(), resume=resume,
    )  # fmt: skip
    journal = Journal(world.folder / "journal.sqlite")
    before, provider = last_configuration(journal), Nodes(world)
    spec = Spec("app", "app.py", MASTER, str(world.folder), str(world.folder / "s"), "c", mode=world.mode)

    def start(new: Spec) -> DriverProcess:
        return cast(DriverProcess, Driver(world, new))

    start_nodes(provider, before.nodes if before else 1, last_places(journal))
    link = (
        cast(DriverProcess, Driver(world, spec))
        if not world.drivers
        else cast(DriverProcess, Attached(world, spec))
    )
    return take_control(order, journal, Clock(world), 0.0, provider, link, start, Heartbeat())


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
        world.add_node(world.kind)
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
    decision = check_decision_is_in_the_journal(world, turns)
    end_what_is_ours(world)
    committed = len(world.committed)

    again = controller(world, policy, resume=True)
    check_decision_was_reconciled(again, decision)
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


def check_decision_is_in_the_journal(world: World, number: int) -> Decision:
    """The killed controller left its decision, and `explain` says that it was not finished."""
    with Journal.read(world.folder / "journal.sqlite") as journal:
        decision = journal.pending()
        assert decision is not None and decision.number == number
        assert journal.turn(number) is None
        answer = explain(journal, None, now=0.0)
    assert answer.decision == decision and answer.pending
    return decision


def check_decision_was_reconciled(again: Running, decision: Decision) -> None:
    """The decision has an outcome, which says what runs; the guards count it."""
    turn = again.journal.last()
    assert turn is not None and again.journal.pending() is None
    assert turn == decision.with_outcome(turn.outcome)
    assert turn.outcome.status is Status.INTERRUPTED
    assert turn.outcome.configuration == again.engine.configuration
    changed = turn.outcome.configuration.describe(decision.plan.current)
    ran = "ran as before" if changed == "no change" else f"ran with {changed}"
    assert turn.outcome.reason.endswith(f"when the run was resumed, the application {ran}")
    assert again.loop.changed_at[-1] == turn.outcome.finished_at
    assert again.loop.turns == decision.number
    assert explain(again.journal, None, now=0.0).summary.status == "interrupted"


def end_what_is_ours(world: World) -> None:
    """Whoever keeps the processes of a run ends them with its controller; a cluster of others runs on."""
    if world.owned:
        world.kill_driver()
        world.nodes.clear()


def kill_the_controller() -> None:
    raise Killed


@pytest.mark.parametrize("owned", [True, False])
def test_a_controller_killed_twice_before_its_first_outcome_leaves_one_decision(
    owned: bool, tmp_path: Path
) -> None:
    world = World(tmp_path, owned=owned)
    for _ in range(0 if owned else 3):
        world.add_node(world.kind)
    policy = Wishes(wanted={"nodes": 2, "key": 4})
    run = controller(world, policy)
    strike_at(run.engine, "parallelism", kill_the_controller)
    with pytest.raises(Killed):
        settle(run, policy.wanted)
    run.journal._db.close()
    first = check_decision_is_in_the_journal(world, 1)

    end_what_is_ours(world)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        patch.setattr(SparkEngine, "begin", killed)
        controller(world, policy, resume=True)
    assert check_decision_is_in_the_journal(world, 1) == first

    end_what_is_ours(world)
    again = controller(world, policy, resume=True)
    check_decision_was_reconciled(again, first)
    settle(again, policy.wanted)
    assert [turn.outcome.status for turn in again.journal.turns()].count(Status.INTERRUPTED) == 1
    again.journal.close()


def killed(*_: object) -> None:
    raise Killed


def test_a_resumed_controller_waits_for_the_cool_down_after_an_interrupted_change(tmp_path: Path) -> None:
    world = World(tmp_path)
    policy = Wishes(wanted={"nodes": 2, "key": 4})
    run = controller(world, policy, guards=Guards(cooldown_seconds=60))
    strike_at(run.engine, "parallelism", kill_the_controller)
    with pytest.raises(Killed):
        settle(run, policy.wanted)
    run.journal._db.close()
    end_what_is_ours(world)
    again = controller(world, policy, resume=True, guards=Guards(cooldown_seconds=60))
    resumed_at = again.clock.now()
    change = next(turn for turn in again.turns(resumed_at + 600) if turn.plan.changes)
    assert change.plan.decided_at >= resumed_at + 60
    again.journal.close()


def test_a_resumed_run_starts_the_kinds_of_nodes_that_its_last_change_left(tmp_path: Path) -> None:
    world = World(tmp_path)
    journal = Journal(tmp_path / "kinds.sqlite")
    first = turns(1)[0]
    nodes = (replace(first.observation.nodes[0], name="n1", kind="small", region="east"),)
    observation = replace(first.observation, nodes=nodes)
    placement = Placement(add=(("large", "west"), ("large", "east")), remove=("n1",))
    current = replace(first.plan.current, nodes=1)
    plan = replace(first.plan, current=current, target=replace(current, nodes=2), placement=placement)
    journal.done(replace(first, observation=observation, plan=plan))
    assert last_places(journal) == [("small", "east")]  # it held, or failed
    outcome = replace(first.outcome, status=Status.APPLIED)
    journal.done(
        replace(first, number=2, observation=observation, plan=replace(plan, number=2), outcome=outcome)
    )
    assert last_places(journal) == [("large", "west"), ("large", "east")]
    small, large = world.kind, replace(world.kind, name="large")
    provider = SimulatedProvider(Clock(world), (small, large), ("east", "west"))
    start_nodes(provider, 3, last_places(journal))
    assert [(node.kind.name, node.region) for node in provider.nodes()] == [
        ("large", "west"), ("large", "east"), ("small", "east"),
    ]  # fmt: skip
