"""The three truths about an application's size, which differ while it changes and after every loss.

**Planned** is what the last plan that was carried out wants, **requested** what was asked of Spark and the
provider, **observed** what is there. The healer closes the gap between planned and observed.
"""

from collections import Counter
from dataclasses import dataclass, field

from rheostat.control.ports import Provider
from rheostat.engines.spark.observe.monitor import Monitor
from rheostat.model.configuration import NodeKind

Place = tuple[NodeKind, str]  # a node of this kind in this region


@dataclass(frozen=True)
class Size:
    """How large an application is: its nodes, the oldest first, each with all its executors."""

    places: tuple[Place, ...] = ()

    @property
    def nodes(self) -> int:
        """How many nodes it has."""
        return len(self.places)

    @property
    def executors(self) -> int:
        """The executors that these nodes host."""
        return sum(kind.executors for kind, _ in self.places)

    @property
    def slots(self) -> int:
        """The slots of these nodes."""
        return sum(kind.slots for kind, _ in self.places)

    def __add__(self, more: "tuple[Place, ...]") -> "Size":
        return Size((*self.places, *more))


@dataclass
class Truths:
    """What is planned, requested and observed; actuator, healer and engine read the same one."""

    monitor: Monitor
    provider: Provider
    planned: Size = field(default_factory=Size)
    requested: Size = field(default_factory=Size)

    @property
    def observed(self) -> Size:
        """The nodes that are there."""
        return Size(tuple((node.kind, node.region) for node in self.provider.nodes()))

    @property
    def names(self) -> tuple[str, ...]:
        """The nodes that are there, by name, the oldest first."""
        return tuple(node.name for node in self.provider.nodes())

    @property
    def missing(self) -> tuple[Place, ...]:
        """Planned nodes that are not there."""
        return self.lacking(self.planned)

    @property
    def surplus(self) -> tuple[str, ...]:
        """Nodes beyond those that are planned, the youngest; none before the first plan."""
        return self.names[self.planned.nodes :] if self.planned.nodes else ()

    @property
    def complete(self) -> bool:
        """Whether everything that is planned is there."""
        enough = self.observed.nodes >= self.planned.nodes
        return enough and len(self.hosts()) >= self.planned.executors

    def default(self, count: int) -> tuple[Place, ...]:
        """So many nodes of the default kind."""
        return ((self.provider.kinds[0], self.provider.regions[0]),) * count

    def first(self, nodes: int) -> Size:
        """The oldest nodes, so many; where there are fewer, more of the default kind."""
        places = self.observed.places[:nodes]
        return Size((*places, *self.default(nodes - len(places))))

    def without(self, names: tuple[str, ...]) -> Size:
        """The nodes that are there but these."""
        nodes = self.provider.nodes()
        return Size(tuple((node.kind, node.region) for node in nodes if node.name not in names))

    def lacking(self, size: Size) -> tuple[Place, ...]:
        """What has to be ordered to reach a size."""
        return tuple((Counter(size.places) - Counter(self.observed.places)).elements())

    def hosts(self) -> list[str]:
        """The node of each executor that takes tasks; Spark keeps some for a while whose node is gone."""
        names = self.names
        hosts = [self.monitor.node_of(executor) for executor in self.monitor.executors if executor.ready]
        return [name for name in hosts if name in names]
