"""Workers that are all up from the start: Spark's dynamic allocation chooses which of them it uses."""

from collections.abc import Collection, Sequence

from rheostat.model.configuration import NodeKind
from rheostat.model.errors import RheostatError
from rheostat.model.node import Node, Usage
from rheostat.providers.local import LocalProvider
from rheostat.services.local_cluster import LocalCluster


class AllocatedProvider:
    """Counts a node while it hosts executors, as if a cloud took it back at once when it does not."""

    owned, decides = False, True

    def __init__(self, cluster: LocalCluster, kind: NodeKind, count: int) -> None:
        self.kinds: tuple[NodeKind, ...] = (kind,)
        self._cluster, self._all = cluster, LocalProvider(cluster, self.kinds)
        self.regions, self.limited = self._all.regions, self._all.limited
        self._all.wait([self._all.order(kind).name for _ in range(count)])
        self._hosts: frozenset[str] = frozenset()
        self._settled = False  # the first batch runs without limits, as everybody's does

    @property
    def losses(self) -> int:
        """Workers that ended by themselves so far."""
        return self._all.losses

    def nodes(self) -> tuple[Node, ...]:
        return tuple(node for node in self._all.nodes() if node.name in self._hosts)

    def order(self, kind: NodeKind, region: str = "") -> Node:
        raise RheostatError("Spark's dynamic allocation decides about these nodes: none can be ordered")

    def wait(self, names: Sequence[str]) -> None:
        """All are up already."""

    def settle(self, name: str) -> None:
        self._settled = True
        self._all.settle(name)

    def release(self, name: str) -> None:
        """Spark gives nodes back by itself."""

    def usage(self, name: str) -> Usage | None:
        return self._all.usage(name)

    def node_of(self, host: str, page: str) -> str:
        return self._all.node_of(host, page)

    def refresh(self, hosts: Collection[str]) -> tuple[str, ...]:
        lost = self._all.refresh(hosts)
        there = frozenset(node.name for node in self._all.nodes())
        now = there.intersection(hosts)
        for name in now - self._hosts if self._settled else ():
            self._all.settle(name)
        for name in (self._hosts - now) & there:
            self._cluster.lift(name)
        self._hosts = now
        return lost

    def abandoned(self, name: str) -> bool:
        return self._all.abandoned(name)
