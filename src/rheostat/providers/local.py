"""Nodes on this machine: Workers of the embedded cluster."""

from collections.abc import Collection, Sequence

from rheostat.model.configuration import NodeKind
from rheostat.model.node import REGION, Node, Usage, choose_region
from rheostat.services.local_cluster import LocalCluster


class LocalProvider:
    """Starts and ends Workers of a cluster on this machine; others may share the cluster."""

    owned, decides = True, False

    def __init__(
        self, cluster: LocalCluster, kinds: tuple[NodeKind, ...], regions: tuple[str, ...] = (REGION,)
    ) -> None:
        self.kinds, self.regions = kinds, regions
        self.limited = cluster.has_quotas
        self.losses = 0
        self._cluster = cluster
        self._regions: dict[str, str] = {}  # of our nodes, oldest first

    def nodes(self) -> tuple[Node, ...]:
        workers = {worker.name: worker for worker in self._cluster.workers()}
        return tuple(
            Node(name, workers[name].kind, region, workers[name].ready_at)
            for name, region in tuple(self._regions.items())  # other threads look, too
            if name in workers
        )

    def order(self, kind: NodeKind, region: str = "") -> Node:
        place = choose_region(region, self.regions)
        worker = self._cluster.add(kind)
        self._regions[worker.name] = place
        return Node(worker.name, kind, place)

    def wait(self, names: Sequence[str]) -> None:
        for name in names:
            self._cluster.wait(name)

    def settle(self, name: str) -> None:
        self._cluster.limit(name)

    def release(self, name: str) -> None:
        self._cluster.remove(name)
        self._regions.pop(name, None)

    def usage(self, name: str) -> Usage | None:
        return self._cluster.usage(name)

    def node_of(self, host: str, page: str) -> str:
        port = page.rpartition(":")[2]
        workers = self._cluster.workers() if port else ()
        return next((worker.name for worker in workers if worker.port == port), page or host)

    def refresh(self, hosts: Collection[str]) -> tuple[str, ...]:
        ended = {worker.name for worker in self._cluster.workers() if not worker.alive}
        lost = tuple(name for name in tuple(self._regions) if name in ended)
        for name in lost:
            self.release(name)
        self.losses += len(lost)
        return lost

    def abandoned(self, name: str) -> bool:
        return not self._cluster.is_registered(name)
