"""The embedded cluster by itself, for any Spark application."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rheostat.model.configuration import NodeKind
from rheostat.services.local_cluster import LocalCluster


@contextmanager
def embedded_cluster(
    kind: NodeKind, nodes: int, settings: dict[str, str], warn: Callable[[str], None]
) -> Iterator[LocalCluster]:
    """Start a Master and Workers, and set their CPU quotas; they stop with the block."""
    with LocalCluster(warn=warn, settings=settings) as cluster:
        for name in [cluster.add(kind).name for _ in range(nodes)]:
            cluster.wait(name)
            cluster.limit(name)
        yield cluster
