"""What the loop needs of the world: clock, engine, recorder, nodes. Every adapter passes tests/contracts/."""

from typing import Protocol

from rheostat.analyze.execution import ExecutionModel
from rheostat.control.turn import Decision, Turn
from rheostat.model.configuration import Configuration, NodeKind
from rheostat.model.decision import Outcome, Plan
from rheostat.model.observation import Observation
from rheostat.model.topology import Topology


class Clock(Protocol):
    """Time, injected: the loop never reads another clock."""

    def now(self) -> float:
        """Seconds since the run began."""

    def local_time(self, now: float) -> float:
        """A moment of the run as seconds since Monday's midnight; virtual time begins at that midnight."""

    def sleep(self, seconds: float) -> None:
        """Let time pass."""


class Engine(Protocol):
    """Runs a topology and can change its configuration."""

    @property
    def topology(self) -> Topology:
        """What it runs."""

    @property
    def model(self) -> ExecutionModel:
        """How it runs it."""

    @property
    def kinds(self) -> tuple[NodeKind, ...]:
        """The sizes of node that it can have; the first is the default."""

    @property
    def configuration(self) -> Configuration:
        """What runs now."""

    def observe(self) -> Observation:
        """Everything measured since the last call; what was not measured is None."""

    def apply(self, plan: Plan) -> Outcome:
        """Bring the application to the plan's target, or back to where it was; returns when that is done."""


class Recorder(Protocol):
    """Keeps what the loop decides and what came of it, so that a controller can be killed at any moment."""

    def decided(self, decision: Decision) -> None:
        """Keep a decision that is about to change something; it is safe when this returns."""

    def done(self, turn: Turn) -> None:
        """Keep a turn with its outcome, in place of its decision if there was one."""


class Provider(Protocol):
    """Starts and ends nodes in regions."""

    def nodes(self) -> "tuple[Node, ...]":
        """Every node that is paid for, oldest first, ready or not."""

    def add(self, kind: NodeKind, region: str) -> "Node":
        """Order a node; it is ready after a while."""

    def remove(self, name: str) -> None:
        """End a node."""


class Node(Protocol):
    """A machine that a provider gave us."""

    @property
    def name(self) -> str:
        """Unique within the provider."""

    @property
    def kind(self) -> NodeKind:
        """Its size."""

    @property
    def region(self) -> str:
        """Where it is."""

    @property
    def ready_at(self) -> float:
        """When it can run instances."""
