"""What the loop needs: a clock, an engine, a recorder, nodes. Every adapter passes tests/contracts/."""

from collections.abc import Callable, Collection, Sequence
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
        """A time of the run as seconds since midnight on Monday, when virtual time begins."""

    def sleep(self, seconds: float, roused: Callable[[], bool] = ...) -> None:
        """Wait, but no longer than until `roused` says so; it is asked every now and then."""


class Engine(Protocol):
    """Runs a topology and can change its configuration."""

    @property
    def topology(self) -> Topology:
        """The topology that it runs."""

    @property
    def model(self) -> ExecutionModel:
        """The execution model by which it runs the topology."""

    @property
    def kinds(self) -> tuple[NodeKind, ...]:
        """The kinds of node that it can use; the first is the default."""

    @property
    def configuration(self) -> Configuration:
        """The configuration that runs now."""

    @property
    def alarmed(self) -> bool:
        """Whether batches are late on full nodes, as last polled, so that the next turn should come soon."""

    @property
    def plans_state(self) -> bool:
        """Whether a plan's parallelism changes the number of state partitions; else only a rewrite does."""

    def rewrite_refusal(self, operators: Collection[str]) -> str | None:
        """Why the state of these operators cannot be rewritten for another number; None: it can."""

    def observe(self) -> Observation:
        """Everything measured since the last call; what was not measured is None."""

    def apply(self, plan: Plan) -> Outcome:
        """Bring the application to the plan's target, or roll it back; return when that is done."""


class Recorder(Protocol):
    """Records decisions and their outcomes, so that a controller can be killed at any time."""

    def decided(self, decision: Decision) -> None:
        """Record a decision that is about to change something; it is durable when this returns."""

    def done(self, turn: Turn) -> None:
        """Record a turn with its outcome; it replaces its decision, if that was recorded."""


class Provider(Protocol):
    """Nodes of several kinds in regions: our own, to order and release, or somebody else's.

    No caller checks which provider it is; its attributes say what it can do.
    """

    kinds: tuple[NodeKind, ...]  # available kinds; the first is the default
    regions: tuple[str, ...]  # available regions; the first is the default
    owned: bool  # we order, release and replace nodes; otherwise they come and go with our executors
    decides: bool  # it chooses the number of nodes itself: Rheostat only measures
    limited: bool  # a node is limited to the CPU of its kind

    @property
    def losses(self) -> int:
        """How many nodes were lost so far."""

    def nodes(self) -> tuple[Node, ...]:
        """Every node that is paid for, ready or not, oldest first."""

    def order(self, kind: NodeKind, region: str) -> Node:
        """Order a node, which takes time to become ready; RheostatError if that is not possible."""

    def wait(self, names: Sequence[str]) -> None:
        """Wait until ordered nodes can take executors; RheostatError if one of them fails to start."""

    def settle(self, name: str) -> None:
        """Limit a node to the size of its kind, now that its executors are running."""

    def release(self, name: str) -> None:
        """Stop a node whose executors have left; a node that is not ours is only forgotten."""

    def usage(self, name: str) -> Usage | None:
        """What a node used so far; None if unknown."""

    def node_of(self, host: str, page: str) -> str:
        """The node that an executor runs on, given its host and the address of its log page."""

    def refresh(self, hosts: Collection[str]) -> tuple[str, ...]:
        """Update the list of nodes, given the hosts of executors; return the nodes that ended."""

    def abandoned(self, name: str) -> bool:
        """Whether the cluster abandoned a node that still runs; OSError if it does not say."""
