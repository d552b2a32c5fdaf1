"""Where a run takes place: the provider of its nodes, and what ties its driver process to them."""

import logging
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from rheostat.control.ports import Provider
from rheostat.engines.spark.driver_process import Keep, keep_nothing
from rheostat.model.errors import UserError
from rheostat.providers.allocated import AllocatedProvider
from rheostat.providers.local import LocalProvider
from rheostat.providers.standalone import StandaloneProvider
from rheostat.run.order import Order
from rheostat.services.local_cluster import LocalCluster

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Site:
    """The nodes of a run, and how its driver process is tied to them."""

    provider: Provider
    master: str  # the URL of Spark's Master
    scratch: Path | None = None  # is removed with the cluster; None: somebody else runs it
    keep: Keep = keep_nothing  # ends a process with the cluster; otherwise it outlives its controller


def open_site(order: Order, stack: ExitStack) -> Site:
    """Connect to the cluster that the order names, or start one that ends with the stack."""
    if order.master:
        return Site(StandaloneProvider(order.kinds), order.master)
    cluster = stack.enter_context(LocalCluster(warn=_logger.warning, settings=order.settings))
    provider: Provider = LocalProvider(cluster, order.kinds)
    if order.allocated:
        provider = AllocatedProvider(cluster, order.kind, order.bounds.max_nodes)
    return Site(provider, cluster.url, cluster.folder, cluster.keep_session)


def start_nodes(provider: Provider, count: int, before: Sequence[tuple[str, str]]) -> None:
    """Start the first nodes, where they are ours to start, by the kind and region of those of before."""
    if not provider.owned:
        return
    kinds = {kind.name: kind for kind in provider.kinds}
    wishes = [(kinds.get(kind, provider.kinds[0]), region) for kind, region in before[:count]]
    wishes += [(provider.kinds[0], provider.regions[0])] * (count - len(wishes))
    provider.wait([provider.order(kind, region).name for kind, region in wishes])


def check_kinds(order: Order) -> None:
    """Refuse kinds that cannot be mixed: all executors of a Spark application have one size."""
    if order.master and len(order.kinds) > 1:
        raise UserError(
            "--node: with --master give one kind: the Workers of a cluster do not say of which kind they are"
        )
    if len({kind.slots / kind.executors for kind in order.kinds}) > 1:
        raise UserError(
            "--node: Spark's executors are all of one size, so slots / executors must be the same for every "
            "kind, such as slots=2,executors=1 and slots=8,executors=4"
        )
