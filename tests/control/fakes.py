"""A hand-written engine and clock: `words` of rheostat.policies.example, measured as the test says."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace

from rheostat.analyze.execution import ExecutionModel, Pipelined
from rheostat.control.turn import Decision, Turn
from rheostat.model.configuration import Configuration, NodeKind
from rheostat.model.decision import Cause, Outcome, Plan, Proposal, Status
from rheostat.model.errors import RheostatError
from rheostat.model.observation import Event, Observation
from rheostat.model.topology import Topology
from rheostat.policies.base import Info, Memory, Policy, Situation
from rheostat.policies.example import WORDS, situation


@dataclass
class FakeClock:
    """Time that passes only when someone sleeps."""

    time: float = 0.0
    resolution: float = 0.0  # shorter sleeps do not move it
    step: float = 0.5
    local_start: float = 0.0

    def now(self) -> float:
        return self.time

    def local_time(self, now: float) -> float:
        return self.local_start + now

    def sleep(self, seconds: float, roused: Callable[[], bool] = lambda: False) -> None:
        until = self.time + seconds if seconds >= self.resolution else self.time
        while self.time < until:
            self.time = min(until, self.time + self.step)
            if roused():
                return


@dataclass
class FakeEngine:
    """Does at once what a plan says; `failing` plans are rolled back, `takes` seconds pass meanwhile."""

    clock: FakeClock
    load: float = 1_000.0
    takes: float = 0.0
    failing: bool = False
    blind: bool = False
    broken: str = ""  # why apply gives up with an error
    deaf: str = ""  # why observe does
    alarm_at: float = float("inf")  # from then on it is alarmed
    unwritable: str | None = None  # why its state cannot be rewritten, "": it can; None: plans change it
    events: tuple[Event, ...] = ()
    applied: list[Plan] = field(default_factory=list)
    topology: Topology = WORDS
    model: ExecutionModel = field(default_factory=Pipelined)
    kinds: tuple[NodeKind, ...] = (NodeKind(cores=2, slots=2),)
    configuration: Configuration = field(
        default_factory=lambda: Configuration(dict.fromkeys(WORDS.names, 1), 2, 2)
    )

    @property
    def alarmed(self) -> bool:
        return self.clock.now() >= self.alarm_at

    @property
    def plans_state(self) -> bool:
        return self.unwritable is None

    def rewrite_refusal(self, operators: Collection[str]) -> str | None:
        return self.unwritable or None

    def observe(self) -> Observation:
        if self.deaf:
            raise RheostatError(self.deaf)
        counts = self.configuration.parallelism
        parallelism = (counts["lines"], counts["split"], counts["count"])
        observed = situation(
            self.load, parallelism, self.configuration.nodes, now=self.clock.now()
        ).observation
        observed = replace(observed, events=self.events)
        return replace(observed, nodes=()) if self.blind else observed

    def apply(self, plan: Plan) -> Outcome:
        self.applied.append(plan)
        started = self.clock.now()
        if not plan.changes:
            return Outcome(Status.UNCHANGED, self.configuration, started, started, plan.reason)
        self.clock.sleep(self.takes)
        if self.broken:
            raise RheostatError(self.broken)
        if self.failing:
            return Outcome(Status.FAILED, self.configuration, started, self.clock.now(), "no machine left")
        self.configuration = plan.target
        return Outcome(
            Status.APPLIED, self.configuration, started, self.clock.now(), "done", pause_seconds=self.takes
        )


@dataclass
class FakeRecorder:
    """Remembers what it was given, and what the engine had been asked for by then."""

    engine: FakeEngine
    decisions: list[tuple[Decision, int]] = field(default_factory=list)  # and plans applied before
    turns: list[Turn] = field(default_factory=list)

    def decided(self, decision: Decision) -> None:
        self.decisions.append((decision, len(self.engine.applied)))

    def done(self, turn: Turn) -> None:
        self.turns.append(turn)


@dataclass(frozen=True)
class OneMore(Policy):
    """Wishes for one more instance of split, every time, and counts how often it was asked."""

    info = Info("one-more", "operators", "reactive", "tests")

    def propose(self, situation: Situation, memory: Memory) -> tuple[Proposal, Memory]:
        now = situation.configuration
        wanted = {**now.parallelism, "split": now.parallelism["split"] + 1}
        target = Configuration(wanted, now.executors, now.nodes)
        return Proposal(target, "one more"), {"asked": memory.get("asked", 0) + 1}


@dataclass(frozen=True)
class Sometimes(Policy):
    """Moves split between one and two instances every so many turns, and holds otherwise."""

    info = Info("sometimes", "operators", "reactive", "tests")
    every: int = 10

    def propose(self, situation: Situation, memory: Memory) -> tuple[Proposal, Memory]:
        asked, now = memory.get("asked", 0) + 1, situation.configuration
        split = now.parallelism["split"]
        wanted = {**now.parallelism, "split": split if asked % self.every else 3 - split}
        expected = {"highest utilisation": 0.4}
        cause = Cause("asked", "policy", float(asked), ">=", 1.0)
        target = Configuration(wanted, now.executors, now.nodes)
        return Proposal(target, "it is time", (cause,), ("waiting",), expected), {"asked": asked}


@dataclass(frozen=True)
class Divides(Policy):
    """Divides by zero the first two times, then works."""

    info = Info("divides", "operators", "reactive", "tests")
    calls: list[int] = field(default_factory=list)

    def propose(self, situation: Situation, memory: Memory) -> tuple[Proposal, Memory]:
        self.calls.append(1)
        part = 1 / max(0, len(self.calls) - 2)
        return Proposal(situation.configuration, f"hold: {part:g}"), {"asked": len(self.calls)}
