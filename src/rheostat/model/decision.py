"""Decisions as values: a policy's wish (proposal), what passed the guards (plan), what happened (outcome)."""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from rheostat.model.configuration import Configuration
from rheostat.model.rewrite import Rewrite

Relation = Literal["<", "<=", ">", ">=", "=="]
_RELATIONS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
}


@dataclass(frozen=True, slots=True)
class Cause:
    """A measured fact behind a decision, which a program can check.

    >>> Cause("utilisation", "split", 0.91, ">", 0.7).holds()
    True
    >>> str(Cause("utilisation", "split", 0.91, ">", 0.7))
    'utilisation of split 0.91 > 0.7'
    """

    measure: str
    subject: str
    value: float
    relation: Relation
    threshold: float

    def holds(self) -> bool:
        """Check the stated relation on the stated numbers."""
        return _RELATIONS[self.relation](self.value, self.threshold)

    def __str__(self) -> str:
        return f"{self.measure} of {self.subject} {self.value:.4g} {self.relation} {self.threshold:.4g}"


@dataclass(frozen=True, slots=True)
class Placement:
    """Where instances should run; an engine that cannot place them (Spark) may ignore `put` and `take`."""

    put: tuple[tuple[str, str], ...] = ()  # (operator, node): new instances
    take: tuple[tuple[str, str], ...] = ()  # (operator, node): instances to stop
    add: tuple[tuple[str, str], ...] = ()  # (kind, region): nodes to start
    remove: tuple[str, ...] = ()  # nodes to stop
    hide: tuple[str, ...] | None = None  # nodes that get no new instances; None: as before
    keep: bool = False  # running instances stay where they are

    def nodes_after(self, nodes: int) -> int:
        """The number of nodes once the named nodes are added and removed.

        >>> Placement(add=(("small", "local"),), remove=("n1", "n2")).nodes_after(5)
        4
        """
        return nodes + len(self.add) - len(set(self.remove))

    def contradicts(self, current: Configuration, target: Configuration) -> bool:
        """Whether the nodes it adds and removes lead to another number of nodes than the target's."""
        names_nodes = bool(self.add or self.remove)
        return names_nodes and self.nodes_after(current.nodes) != target.nodes


@dataclass(frozen=True, slots=True)
class Proposal:
    """A policy's wish, with a reason for people to read and causes for programs to check."""

    target: Configuration
    reason: str
    causes: tuple[Cause, ...] = ()
    rejected: tuple[str, ...] = ()  # alternatives, and why they were rejected
    expected: Mapping[str, float] = field(default_factory=dict)  # the expected effect, by measure
    placement: Placement = Placement()
    alert: str | None = None
    rewrite: Rewrite | None = None  # of a plain script's state, which restarts the script
    advice: str | None = None  # what would help, and is not done
    asked_by: str | None = None  # the person who asked for it by hand; None: the policy did

    def changes(self, current: Configuration) -> bool:
        """Whether the proposal changes anything."""
        places = self.placement
        moves = places.put or places.take or places.add or places.remove
        return self.target != current or self.rewrite is not None or bool(moves)


@dataclass(frozen=True, slots=True)
class Plan:
    """A decision that passed the guards."""

    number: int
    decided_at: float
    current: Configuration
    target: Configuration
    reason: str
    causes: tuple[Cause, ...] = ()
    rejected: tuple[str, ...] = ()
    expected: Mapping[str, float] = field(default_factory=dict)
    placement: Placement = Placement()
    vetoes: tuple[str, ...] = ()  # what the guards changed or refused, and why
    wished: Configuration | None = None  # the proposal's target, where there are vetoes
    alert: str | None = None
    changes: bool = True
    rewrite: Rewrite | None = None  # of a plain script's state, which restarts the script
    advice: str | None = None  # what would help, and is not done
    asked_by: str | None = None  # the person who asked for it by hand; None: the policy did

    def __post_init__(self) -> None:
        if self.placement.contradicts(self.current, self.target):
            after = self.placement.nodes_after(self.current.nodes)
            raise ValueError(f"the placement leads to {after} nodes, the target has {self.target.nodes}")

    def describe(self) -> str:
        """Describe what it changes, including named nodes and moved instances."""
        words = [self.target.describe(self.current)] if self.target != self.current else []
        words += [self.rewrite.change] if self.rewrite else []
        places = self.placement
        words += [f"add a node {kind} in {region}" for kind, region in places.add]
        words += [f"remove node {name}" for name in places.remove]
        if self.target == self.current and (places.put or places.take):
            words.append(f"instances to move: {max(len(places.put), len(places.take))}")
        return ", ".join(words) or "no change"


class Status(StrEnum):
    """How applying a plan ended."""

    APPLIED = "applied"
    UNCHANGED = "unchanged"
    FAILED = "failed"
    DRY_RUN = "dry-run"  # decided and recorded, but not applied
    INTERRUPTED = "interrupted"  # its controller was killed; recorded by the controller that resumed the run


TRIED = (
    Status.APPLIED,
    Status.FAILED,
    Status.INTERRUPTED,
)  # may have changed the application, so guards count them


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of applying a plan, in words, and with the fact that stopped it if it failed."""

    status: Status
    configuration: Configuration
    started_at: float
    finished_at: float
    reason: str
    causes: tuple[Cause, ...] = ()
    pause_seconds: float = 0.0
    steps: tuple[str, ...] = ()  # what was done, in order, if the engine reports it
