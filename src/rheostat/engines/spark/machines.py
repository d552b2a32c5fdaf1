"""The nodes under an application: ours to start and end, or Workers of a cluster that somebody else runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from rheostat.engines.spark.protocol import Executor
from rheostat.model.configuration import NodeKind
from rheostat.model.errors import RheostatError
from rheostat.providers.local import LocalProvider
from rheostat.services.usage import Usage


class Machines(Protocol):
    """What the engine needs of its nodes."""

    url: str
    kind: NodeKind
    scratch: Path | None  # goes when the nodes go; None: they are not ours
    losses: int  # nodes that ended by themselves so far
    allocated: bool  # Spark's dynamic allocation decides how many executors there are
    limited: bool  # whether a node has the CPU of its kind and no more

    def names(self) -> tuple[str, ...]:
        """Oldest first."""

    def add(self, count: int) -> tuple[str, ...]:
        """Start more and wait until they can take executors; none where the cluster has them already."""

    def settle(self, name: str) -> None:
        """It has its executors: from now on it is as large as its kind says."""

    def remove(self, name: str) -> None:
        """End one; its executors are gone already."""

    def of(self, executor: Executor) -> str:
        """The node that an executor runs on."""

    def usage(self, name: str) -> Usage | None:
        """What it used so far; None: nobody knows."""

    def check(self, executors: Sequence[Executor]) -> tuple[str, ...]:
        """Look which nodes are there, given the executors; returns those that ended by themselves."""

    def dropped(self, name: str) -> bool:
        """Whether the cluster gave up on a node whose process is still there."""


class LocalMachines:
    """Workers on this machine, through the local provider."""

    allocated = False

    def __init__(self, provider: LocalProvider, kind: NodeKind) -> None:
        self.provider, self.kind, self.url = provider, kind, provider.url
        self.scratch: Path | None = provider.folder
        self.losses = 0
        self.limited = provider.has_quotas

    def names(self) -> tuple[str, ...]:
        return tuple(node.name for node in self.provider.nodes())

    def add(self, count: int) -> tuple[str, ...]:
        ordered = [self.provider.add(self.kind).name for _ in range(count)]
        try:
            return tuple(self.provider.wait(name).name for name in ordered)
        except RheostatError:
            for name in set(ordered) & set(self.names()):
                self.provider.remove(name)
            raise

    def settle(self, name: str) -> None:
        self.provider.limit(name)

    def remove(self, name: str) -> None:
        self.provider.remove(name)

    def of(self, executor: Executor) -> str:
        page = _page(executor)
        port = page.rpartition(":")[2]
        return next((node.name for node in self.provider.nodes() if node.port == port), page)

    def usage(self, name: str) -> Usage | None:
        return self.provider.usage(name)

    def check(self, executors: Sequence[Executor]) -> tuple[str, ...]:
        lost = tuple(node.name for node in self.provider.nodes() if not node.alive)
        for name in lost:
            self.provider.remove(name)
        self.losses += len(lost)
        return lost

    def dropped(self, name: str) -> bool:
        return not self.provider.is_registered(name)


class AllocatedMachines(LocalMachines):
    """Workers that are all up from the start; Spark's dynamic allocation chooses which of them it uses.

    A node counts while it hosts executors, as if a cloud took it back at once when it does not.
    """

    allocated = True

    def __init__(self, provider: LocalProvider, kind: NodeKind, count: int) -> None:
        super().__init__(provider, kind)
        super().add(count)
        self._hosts: frozenset[str] = frozenset()
        self._settled = False  # the first batch runs without limits, as everybody's does

    def names(self) -> tuple[str, ...]:
        return tuple(name for name in super().names() if name in self._hosts)

    def add(self, count: int) -> tuple[str, ...]:
        return ()

    def settle(self, name: str) -> None:
        self._settled = True
        super().settle(name)

    def remove(self, name: str) -> None:
        pass

    def check(self, executors: Sequence[Executor]) -> tuple[str, ...]:
        lost = super().check(executors)
        hosts = frozenset(map(self.of, executors)) & frozenset(super().names())
        for name in hosts - self._hosts if self._settled else ():
            self.provider.limit(name)
        for name in (self._hosts - hosts) & frozenset(super().names()):
            self.provider.lift(name)
        self._hosts = hosts
        return lost


class ForeignMachines:
    """The Workers of a cluster that is not ours: nodes in use are those that host our executors."""

    allocated = False

    def __init__(self, url: str, kind: NodeKind) -> None:
        self.url, self.kind = url, kind
        self.scratch: Path | None = None
        self.losses = 0  # whoever runs the cluster replaces its Workers
        self.limited = False  # as far as we know
        self._seen: dict[str, None] = {}

    def names(self) -> tuple[str, ...]:
        return tuple(self._seen)

    def add(self, count: int) -> tuple[str, ...]:
        return ()

    def settle(self, name: str) -> None:
        pass

    def remove(self, name: str) -> None:
        self._seen.pop(name, None)

    def of(self, executor: Executor) -> str:
        return _page(executor)

    def usage(self, name: str) -> Usage | None:
        return None

    def check(self, executors: Sequence[Executor]) -> tuple[str, ...]:
        hosts = dict.fromkeys(self.of(executor) for executor in executors)
        self._seen = {name: None for name in (*self._seen, *hosts) if name in hosts}
        return ()

    def dropped(self, name: str) -> bool:
        return False


def _page(executor: Executor) -> str:
    """The Worker's address, from the page on which it shows the executor's log."""
    return urlsplit(executor.page or "").netloc or executor.host
