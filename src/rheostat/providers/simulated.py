"""Nodes that exist only in a simulation: they take virtual time to start, and cost node-seconds."""

from collections.abc import Collection, Sequence

from rheostat.control.ports import Clock
from rheostat.model.configuration import NodeKind
from rheostat.model.errors import RheostatError
from rheostat.model.node import REGION, Node, Usage, choose_region


class SimulatedProvider:
    """A Provider on a virtual clock, where every node starts in time and none fails."""

    owned, decides, limited, losses = True, False, True, 0

    def __init__(
        self, clock: Clock, kinds: tuple[NodeKind, ...], regions: tuple[str, ...] = (REGION,)
    ) -> None:
        self.kinds, self.regions = kinds, regions
        self._clock = clock
        self._nodes: dict[str, Node] = {}
        self._ordered = 0

    def nodes(self) -> tuple[Node, ...]:
        return tuple(self._nodes.values())

    def order(self, kind: NodeKind, region: str = "") -> Node:
        place = choose_region(region, self.regions)
        self._ordered += 1
        node = Node(f"n{self._ordered}", kind, place, self._clock.now() + kind.startup_seconds)
        self._nodes[node.name] = node
        return node

    def wait(self, names: Sequence[str]) -> None:
        ready_at = max((self._nodes[name].ready_at or 0.0 for name in names), default=0.0)
        self._clock.sleep(max(0.0, ready_at - self._clock.now()))

    def settle(self, name: str) -> None:
        """It is as large as its kind says from the start."""

    def release(self, name: str) -> None:
        if self._nodes.pop(name, None) is None:
            raise RheostatError(f"there is no node {name!r}")

    def usage(self, name: str) -> Usage | None:
        return None  # the simulated flow knows

    def node_of(self, host: str, page: str) -> str:
        return host

    def refresh(self, hosts: Collection[str]) -> tuple[str, ...]:
        return ()

    def abandoned(self, name: str) -> bool:
        return False
