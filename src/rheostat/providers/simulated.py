"""Nodes that exist only in a simulation: they cost start-up time and node-seconds, as real ones do."""

from collections.abc import Callable
from dataclasses import dataclass

from rheostat.model.configuration import NodeKind
from rheostat.model.errors import RheostatError


@dataclass(frozen=True, slots=True)
class SimulatedNode:
    """A node on a virtual clock."""

    name: str
    kind: NodeKind
    region: str
    ordered_at: float
    ready_at: float


class SimulatedProvider:
    """A Provider on a virtual clock."""

    def __init__(self, now: Callable[[], float], regions: tuple[str, ...] = ("local",)) -> None:
        self._now = now
        self._regions = regions
        self._nodes: dict[str, SimulatedNode] = {}
        self._ordered = 0

    def nodes(self) -> tuple[SimulatedNode, ...]:
        return tuple(self._nodes.values())

    def add(self, kind: NodeKind, region: str = "") -> SimulatedNode:
        place = region or self._regions[0]
        if place not in self._regions:
            raise RheostatError(f"there is no region {place!r}; regions are {', '.join(self._regions)}")
        self._ordered += 1
        now = self._now()
        node = SimulatedNode(f"n{self._ordered}", kind, place, now, now + kind.startup_seconds)
        self._nodes[node.name] = node
        return node

    def remove(self, name: str) -> None:
        if name not in self._nodes:
            raise RheostatError(f"there is no node {name!r}")
        del self._nodes[name]
