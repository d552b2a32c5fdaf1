"""The embedded cluster by itself, for any Spark application."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rheostat.model.configuration import NodeKind
from rheostat.providers.local import LocalProvider


@contextmanager
def embedded_cluster(
    kind: NodeKind, nodes: int, settings: dict[str, str], warn: Callable[[str], None]
) -> Iterator[LocalProvider]:
    """Start a Master and Workers, and set their CPU quotas; they stop with the block."""
    with LocalProvider(warn=warn, settings=settings) as provider:
        for name in [provider.add(kind).name for _ in range(nodes)]:
            provider.wait(name)
            provider.limit(name)
        yield provider
