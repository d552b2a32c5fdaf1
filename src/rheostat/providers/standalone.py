"""The Workers of a standalone cluster that somebody else runs."""

from collections.abc import Collection, Sequence

from rheostat.model.configuration import NodeKind
from rheostat.model.errors import RheostatError
from rheostat.model.node import REGION, Node, Usage


class StandaloneProvider:
    """Counts the nodes that host our executors: they come when executors are requested, and go with them.

    A Worker does not say of which kind it is, so all count as the default kind.
    """

    owned, decides = False, False
    limited = False  # as far as we know

    def __init__(self, kinds: tuple[NodeKind, ...]) -> None:
        self.kinds = kinds
        self.regions: tuple[str, ...] = (REGION,)
        self.losses = 0  # whoever runs the cluster replaces its Workers
        self._names: tuple[str, ...] = ()

    def nodes(self) -> tuple[Node, ...]:
        return tuple(Node(name, self.kinds[0], self.regions[0], ready_at=0.0) for name in self._names)

    def order(self, kind: NodeKind, region: str = "") -> Node:
        raise RheostatError(
            "these nodes are not ours to order: the cluster places the executors that we request"
        )

    def wait(self, names: Sequence[str]) -> None:
        """They are there already."""

    def settle(self, name: str) -> None:
        """Their size is not ours to set."""

    def release(self, name: str) -> None:
        self._names = tuple(other for other in self._names if other != name)

    def usage(self, name: str) -> Usage | None:
        return None

    def node_of(self, host: str, page: str) -> str:
        return page or host

    def refresh(self, hosts: Collection[str]) -> tuple[str, ...]:
        self._names = tuple(name for name in dict.fromkeys((*self._names, *hosts)) if name in hosts)
        return ()

    def abandoned(self, name: str) -> bool:
        return False
