"""A plain script is restarted on rewritten state, with every fault at every step, on a scripted world.

tests/spark/test_script_rewrite.py and tests/chaos/test_script_rewrites.py do some of it to a real cluster.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import pytest

from rheostat.control.rescaling import Rescale
from rheostat.control.turn import Turn
from rheostat.engines.spark.driver_process import DriverProcess
from rheostat.engines.spark.engine import REWRITE_ATTEMPTS, SparkEngine
from rheostat.engines.spark.spec import SPEC, CheckpointRewrite, Spec
from rheostat.journal.store import Journal
from rheostat.model.configuration import Bounds
from rheostat.model.decision import Outcome, Plan, Proposal, Status
from rheostat.model.rewrite import Rewrite
from rheostat.policies.base import Info, Memory, Policy, Situation, hold
from rheostat.run.composition import Running, cut_short, last_configuration, last_places, take_control
from rheostat.run.heartbeat import Heartbeat
from rheostat.run.order import Order
from rheostat.run.site import start_nodes
from tests.scripted.world import MASTER, Clock, Driver, Nodes, World, application, live, names

from .test_faults import FAULTS, strike, strike_at
from .test_resume import Attached, Killed, end_what_is_ours, kill_the_controller

STEPS = ("stop", "rewrite", "restart")
REWRITE = Rewrite(("total",), before=8, after=2, batch_seconds=4.0, predicted_seconds=1.0, pause_seconds=9.0)


def script(folder: Path, **given: object) -> World:
    return World(folder, script=True, state=8, **given)  # type: ignore[arg-type]


def rewrite(engine: SparkEngine) -> Outcome:
    """Do it, as a plan says."""
    now = engine.configuration
    return engine.apply(Plan(1, engine.now(), now, now, "too many", rewrite=REWRITE))


def check_runs(engine: SparkEngine, world: World, nodes: int) -> None:
    """The script runs on all its nodes, and nothing is left half-done."""
    batches = len(world.committed)
    live(engine, 5)
    assert len(names(engine)) == engine.configuration.nodes == nodes
    assert len(world.ready()) == world.wanted == engine.configuration.executors
    assert len(world.committed) > batches + 2
    assert (world.cut_short, world.drivers) == (False, 1)


def test_the_script_is_stopped_rewritten_and_started_again_on_the_same_nodes(tmp_path: Path) -> None:
    world = script(tmp_path)
    engine = application(world, nodes=2)
    had, committed = names(engine), len(world.committed)
    outcome = rewrite(engine)
    assert outcome.status is Status.APPLIED
    assert outcome.reason.startswith("state of total 8 -> 2 partitions in ")
    assert outcome.steps[0] == "script stopped"
    assert outcome.steps[1] == "state rewritten in 2.0 s"
    assert outcome.steps[2].startswith("script started again, paused for ")
    assert outcome.pause_seconds > world.rewrite_seconds
    assert world.state == 2
    assert names(engine) == had
    assert len(world.committed) >= committed
    check_runs(engine, world, nodes=2)
    assert engine.driver.spec.rewrites == (CheckpointRewrite("c", 2),)


def test_state_that_cannot_be_rewritten_is_known_before_anything_is_stopped(tmp_path: Path) -> None:
    world = script(tmp_path, refuses_rewrites="Spark cannot rewrite it")
    engine = application(world, nodes=2)
    batches = len(world.committed)
    outcome = rewrite(engine)
    assert (outcome.status, outcome.reason) == (Status.FAILED, "Spark cannot rewrite it")
    assert (world.asked, outcome.steps) == ([], ())
    live(engine, 5)
    assert (world.state, world.drivers) == (8, 1)
    assert len(world.committed) > batches


def test_a_rewrite_that_spark_gives_up_leaves_the_script_running_as_before_and_is_not_repeated(
    tmp_path: Path,
) -> None:
    world = script(tmp_path, rewrites="the disk is full")
    engine = application(world)
    assert engine.rewrite_refusal(["total"]) is None
    outcome = rewrite(engine)
    assert outcome.status is Status.FAILED
    assert outcome.reason == ("the state could not be rewritten: the disk is full; the script runs as before")
    assert world.state == 8
    check_runs(engine, world, nodes=1)
    assert engine.rewrite_refusal(["total"]) == "it failed: the disk is full"


def test_a_script_whose_batches_would_be_interrupted_is_not_stopped(tmp_path: Path) -> None:
    world = script(tmp_path)
    engine = application(world)
    last = engine.monitor.recent[-1]
    engine.monitor.recent.append(replace(last, finished=last.started + 121.0))
    why = "batches take up to 121 s, and a stop interrupts them after 120 s"
    assert (engine.rewrite_refusal(["total"]) or "").startswith(why)
    assert engine.rewrite_refusal(["another"]) is None
    assert rewrite(engine).reason.startswith(why)
    assert world.asked == []


def test_a_rewrite_that_kills_every_driver_is_given_up(tmp_path: Path) -> None:
    world = script(tmp_path)
    engine = application(world)
    for attempt in range(REWRITE_ATTEMPTS):
        assert engine.rewrite_refusal(["total"]) is None, attempt
        strike_at(engine, "restart", world.kill_driver)
        assert rewrite(engine).status is Status.FAILED
        live(engine, 60)
        check_runs(engine, world, nodes=1)
    assert (engine.rewrite_refusal(["total"]) or "").startswith("it failed: ")
    assert world.state == 8


@pytest.mark.parametrize("which", [-1, 0])
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("step", STEPS)
def test_after_a_fault_at_any_step_the_script_runs_and_its_state_can_be_rewritten(
    step: str, fault: str, which: int, tmp_path: Path
) -> None:
    world = script(tmp_path)
    engine = application(world, nodes=2)
    reached = strike_at(engine, step, lambda: strike(world, fault, which))
    outcome = rewrite(engine)
    assert step in reached
    live(engine, 240)
    check_runs(engine, world, nodes=2)
    assert world.state == (2 if outcome.status is Status.APPLIED else 8), outcome.reason

    again = rewrite(engine)
    assert again.status is Status.APPLIED, again.reason
    assert world.state == 2
    check_runs(engine, world, nodes=2)


def test_a_driver_that_dies_in_the_middle_of_the_rewrite_is_started_again_on_the_state_as_it_was(
    tmp_path: Path,
) -> None:
    world = script(tmp_path, rewrite_seconds=4.0)
    engine = application(world)
    clock = cast(Clock, engine.clock)

    def kill_once() -> None:
        if world.cut_short:
            clock.on_tick = lambda: None
            world.kill_driver()

    clock.on_tick = kill_once
    outcome = rewrite(engine)
    assert outcome.status is Status.FAILED
    live(engine, 60)
    assert world.state == 8
    check_runs(engine, world, nodes=1)
    assert engine.driver.spec.rewrites == (CheckpointRewrite("c", None),)
    assert rewrite(engine).status is Status.APPLIED
    assert world.state == 2


# -- a controller that is killed ------------------------------------------------------------------------


@dataclass(frozen=True)
class Once(Policy):
    """Proposes the rewrite while the state has more partitions than that."""

    period_seconds: float = 5.0
    world: World = field(default_factory=lambda: World(Path()))
    info = Info("once", "operators", "reactive", "tests")

    def propose(self, situation: Situation, memory: Memory) -> tuple[Proposal, Memory]:
        wanted = REWRITE if self.world.state > REWRITE.after else None
        return replace(hold(situation, "a test wants it"), rewrite=wanted), memory


def controlled(world: World, resume: bool = False, mode: Rescale = Rescale.AUTO) -> Running:
    """Take control of the script as `rheostat run` does."""
    order = Order(
        "app", Path("app.py"), Once(world=world), "once", world.folder, kinds=(world.kind,),
        bounds=Bounds(1, 3), rescale=mode, resume=resume,
    )  # fmt: skip
    journal, provider = Journal(world.folder / "journal.sqlite"), Nodes(world)
    spec = Spec(
        "app", "app.py", MASTER, str(world.folder), str(world.folder / "s"), "c", rewrites=cut_short(order)
    )

    def start(new: Spec) -> DriverProcess:
        new.write()  # as DriverProcess.start does
        return cast(DriverProcess, Driver(world, new))

    before = last_configuration(journal)
    start_nodes(provider, before.nodes if before else 1, last_places(journal))
    link = cast(DriverProcess, Attached(world, spec)) if world.drivers else start(spec)
    return take_control(order, journal, Clock(world), 0.0, provider, link, start, Heartbeat())


def until_rewritten(run: Running, world: World) -> Turn:
    """Control until a turn after the rewrite; no longer than ten minutes."""
    for turn in run.turns(run.clock.now() + 600):
        if world.state == REWRITE.after and not turn.plan.changes:
            return turn
    raise AssertionError(f"it has {world.state} partitions")


@pytest.mark.parametrize("owned", [True, False])
@pytest.mark.parametrize("step", STEPS)
def test_a_controller_killed_at_any_step_is_resumed_and_the_state_rewritten(
    step: str, owned: bool, tmp_path: Path
) -> None:
    world = script(tmp_path, owned=owned)
    for _ in range(0 if owned else 1):
        world.add_node(world.kind)
    run = controlled(world)
    strike_at(run.engine, step, kill_the_controller)
    with pytest.raises(Killed):
        until_rewritten(run, world)
    if step == "restart":
        world.sleep(world.executor_seconds + 1.0)
        assert world.cut_short
    run.journal._db.close()  # as a process that is killed leaves it
    end_what_is_ours(world)
    world.sleep(10.0)  # a driver that lives on finishes what it began

    again = controlled(world, resume=True)
    interrupted = again.journal.last()
    assert interrupted is not None and interrupted.outcome.status is Status.INTERRUPTED
    assert interrupted.plan.rewrite == REWRITE
    until_rewritten(again, world)
    check_runs(again.engine, world, nodes=1)
    again.journal.close()


@pytest.mark.parametrize("mode", [Rescale.ADVISE, Rescale.NEVER])
def test_a_user_who_did_not_ask_for_it_is_never_restarted(mode: Rescale, tmp_path: Path) -> None:
    world = script(tmp_path)
    run = controlled(world, mode=mode)
    asked = list(world.asked)
    turns = list(run.turns(run.clock.now() + 60))
    assert len(turns) > 5
    assert not any(turn.plan.changes for turn in turns)
    advice = [event.text for event in run.journal.events() if event.kind == "advice"]
    said = [f"{REWRITE.describe()}: `--rescale auto` does it"]
    assert advice == (said if mode is Rescale.ADVISE else [])
    assert (world.state, world.asked) == (8, asked)
    assert Spec.read(tmp_path / SPEC).rewrites == ()
    run.journal.close()
