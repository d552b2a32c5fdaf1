"""The whole loop on an application whose batches take far longer than its trigger: help comes unmeasured."""

from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import pairwise

import pytest

from rheostat.analyze.execution import ExecutionModel, FixedTasks
from rheostat.control.guards import Guards
from rheostat.control.loop import Loop
from rheostat.control.turn import Turn
from rheostat.model.configuration import Bounds, Configuration, NodeKind
from rheostat.model.decision import Outcome, Plan, Status
from rheostat.model.observation import ApplicationMeasures, NodeMeasures, Observation
from rheostat.model.topology import Operator, Stream, Topology
from rheostat.policies.registry import available, build
from tests.control.fakes import FakeClock

SCRIPT = Topology(
    "script", (Operator("scan", max_parallelism=200), Operator("count", max_parallelism=200)),
    (Stream("scan", "count"),),
)  # fmt: skip
TASKS = 200
TRIGGER, COOLDOWN, NODE_SECONDS = 3.0, 20.0, 5.0
KIND = NodeKind(cores=1.0, slots=2)


@dataclass
class Starving:
    """Batches of so many seconds of a node's CPU, one after the other; no window measures a load."""

    clock: FakeClock
    work: float
    compiling_until: float = 0.0
    topology: Topology = SCRIPT
    kinds: tuple[NodeKind, ...] = (KIND,)
    model: ExecutionModel = field(
        default_factory=lambda: FixedTasks(TRIGGER, 0.1, {"scan": TASKS, "count": TASKS}, node_slots=2)
    )
    nodes: int = 1
    late: int = 0
    done: float = 0.0  # of the running batch, in seconds of a node's CPU
    began: float = 0.0
    at: float = 0.0
    second_late_at: float = float("inf")
    plans_state: bool = True

    @property
    def configuration(self) -> Configuration:
        slots = min(TASKS, 2 * self.nodes)
        return Configuration({"scan": slots, "count": slots}, self.nodes, self.nodes)

    @property
    def alarmed(self) -> bool:
        return self._late_now() > 0

    def rewrite_refusal(self, operators: Collection[str]) -> str | None:
        return None

    def observe(self) -> Observation:
        late, now = self._late_now(), self.clock.now()
        machine = NodeMeasures(
            "n", 2, 1.0, cpu=1.0 if late else 0.7, compiling=0.6 if now < self.compiling_until else 0.0
        )
        tasks = round(self.done / self.work * TASKS)
        application = ApplicationMeasures(
            load={"scan": None},
            trigger_seconds=TRIGGER,
            running_seconds=max(0.0, now - self.began),
            tasks_done=tasks,
            tasks_left=TASKS - tasks,
            late_batches=late,
        )
        return Observation(now - 1.0, now, {}, (machine,) * self.nodes, application)

    def apply(self, plan: Plan) -> Outcome:
        started = self.clock.now()
        if not plan.changes:
            return Outcome(Status.UNCHANGED, self.configuration, started, started, plan.reason)
        self.clock.sleep(NODE_SECONDS)
        self._late_now()
        self.nodes = plan.target.nodes
        return Outcome(Status.APPLIED, self.configuration, started, self.clock.now(), "done")

    def _late_now(self) -> int:
        """Let the batches go on until now; those in a row that were late, the running one included."""
        now = self.clock.now()
        while self.at < now:
            step = min(now - self.at, (self.work - self.done) / self.nodes)
            self.at, self.done = self.at + step, self.done + step * self.nodes
            if self.done >= self.work - 1e-9:
                self._end_batch()
        late = self.late + (now - self.began > TRIGGER)
        if late >= 2:
            self.second_late_at = min(self.second_late_at, now)
        return late

    def _end_batch(self) -> None:
        self.late = self.late + 1 if self.at - self.began > TRIGGER else 0
        self.began = self.at = max(self.at, self.began + TRIGGER)
        self.done = 0.0


def run(engine: Starving, policy: str, seconds: float) -> list[Turn]:
    guards = Guards(cooldown_seconds=COOLDOWN)
    return list(Loop(engine, engine.clock, build(policy), Bounds(1, 32), guards).run(until=seconds))


@pytest.mark.parametrize("policy", sorted(set(available()) - {"static"}))
def test_a_starving_application_grows_within_three_triggers_until_its_batches_are_in_time(
    policy: str,
) -> None:
    engine = Starving(FakeClock(), work=50.0)  # on one node, 50 s of a trigger of 3 s
    turns = run(engine, policy, 300.0)
    changes = [turn for turn in turns if turn.plan.changes]
    assert changes[0].plan.decided_at <= TRIGGER + 3 * TRIGGER
    assert changes[0].plan.reason.endswith(" of 200 tasks done: one more node")
    assert 17 <= engine.nodes <= 32
    assert engine._late_now() == 0
    assert all(turn.plan.target.nodes >= turn.plan.current.nodes for turn in turns)
    assert all(turn.plan.target.nodes <= 2 * turn.plan.current.nodes for turn in turns)


def test_turns_stay_three_triggers_apart_and_changes_a_cool_down() -> None:
    turns = run(Starving(FakeClock(), work=1_000.0), "ds2", 300.0)
    times = [turn.plan.decided_at for turn in turns]
    assert min(after - before for before, after in pairwise(times)) >= 3 * TRIGGER
    changed = [turn for turn in turns if turn.plan.changes]
    pairs = list(pairwise(changed))
    assert len(pairs) >= 3
    assert all(b.plan.decided_at - a.outcome.finished_at >= COOLDOWN for a, b in pairs)


def test_a_cold_start_waits_for_its_second_late_batch_and_then_grows_within_30_seconds() -> None:
    engine = Starving(FakeClock(), work=50.0, compiling_until=100.0)
    turns = run(engine, "multilevel", 120.0)
    first = next(turn for turn in turns if turn.plan.changes)
    assert engine.second_late_at <= first.plan.decided_at <= engine.second_late_at + 30.0
    assert (first.plan.current.nodes, first.plan.target.nodes) == (1, 2)


def test_an_application_whose_batches_are_in_time_is_left_alone() -> None:
    turns = run(Starving(FakeClock(), work=2.0), "multilevel", 300.0)
    assert [turn.plan.decided_at for turn in turns] == [30.0 * number for number in range(1, 10)]
    assert not any(turn.plan.changes for turn in turns)
