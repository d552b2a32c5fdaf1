"""Orders nodes, and takes the order back when one of them fails to start."""

from collections.abc import Iterable

from rheostat.control.ports import Provider
from rheostat.engines.spark.actuate.truths import Place
from rheostat.model.errors import RheostatError


def order(provider: Provider, places: Iterable[Place]) -> tuple[str, ...]:
    """Order nodes and wait until they can take executors; none where they come with the executors."""
    if not provider.owned:
        return ()
    ordered: list[str] = []
    try:
        for kind, region in places:
            ordered.append(provider.order(kind, region).name)
        provider.wait(ordered)
    except RheostatError:
        for name in {node.name for node in provider.nodes()}.intersection(ordered):
            provider.release(name)
        raise
    return tuple(ordered)
