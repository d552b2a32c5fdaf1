"""What the loop needs of the world: clock, engine, recorder, nodes. Every adapter passes tests/contracts/."""

from collections.abc import Collection, Sequence
from typing import Protocol

from rheostat.analyze.execution import ExecutionModel
from rheostat.control.turn import Decision, Turn
from rheostat.model.configuration import Configuration, NodeKind
from rheostat.model.decision import Outcome, Plan
from rheostat.model.node import Node, Usage
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
    """Nodes of several kinds in regions: ours to order and release, or somebody else's.

    Nobody asks which provider it is. What it can do, its attributes say.
    """

    kinds: tuple[NodeKind, ...]  # that there can be; the first is the default
    regions: tuple[str, ...]  # where they can be; the first is the default
    owned: bool  # we order, release and replace nodes; otherwise they come and go with our executors
    decides: bool  # it decides by itself how many nodes there are: Rheostat only measures
    limited: bool  # a node has the CPU of its kind and no more

    @property
    def losses(self) -> int:
        """How many nodes ended by themselves so far."""

    def nodes(self) -> tuple[Node, ...]:
        """Every node that is paid for, oldest first, ready or not."""

    def order(self, kind: NodeKind, region: str) -> Node:
        """Order a node, which is ready after a while; RheostatError if that is not possible."""

    def wait(self, names: Sequence[str]) -> None:
        """Wait until ordered nodes can take executors; RheostatError if one of them fails to start."""

    def settle(self, name: str) -> None:
        """Its executors are up: from now on it is as large as its kind says."""

    def release(self, name: str) -> None:
        """End a node whose executors have left; one of somebody else's is only forgotten."""

    def usage(self, name: str) -> Usage | None:
        """What a node used so far; None: nobody knows."""

    def node_of(self, host: str, page: str) -> str:
        """The node that an executor runs on, by its host and the address of its log's page."""

    def refresh(self, hosts: Collection[str]) -> tuple[str, ...]:
        """Look which nodes are there, given those that host executors; return those that ended."""

    def abandoned(self, name: str) -> bool:
        """Whether the cluster gave up on a node that is still there; OSError if it does not say."""
