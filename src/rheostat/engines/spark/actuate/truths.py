"""The three truths about an application's size, which differ while it changes and after every loss.

**Planned** is what the last plan that was carried out wants, **requested** what was asked of Spark and the
provider, **observed** what is there. The healer closes the gap between planned and observed.
"""

from dataclasses import dataclass, field

from rheostat.engines.spark.machines import Machines
from rheostat.engines.spark.observe.monitor import Monitor


@dataclass(frozen=True)
class Size:
    """How large an application is."""

    nodes: int = 0
    executors: int = 0


@dataclass
class Truths:
    """What is planned, requested and observed; actuator, healer and engine read the same one."""

    monitor: Monitor
    machines: Machines
    planned: Size = field(default_factory=Size)
    requested: Size = field(default_factory=Size)

    @property
    def observed(self) -> Size:
        """The nodes that are there, and their executors that take tasks."""
        return Size(len(self.machines.names()), len(self.hosts()))

    @property
    def missing_nodes(self) -> int:
        """Planned nodes that are not there."""
        return max(0, self.planned.nodes - self.observed.nodes)

    @property
    def surplus_nodes(self) -> tuple[str, ...]:
        """Nodes beyond those that are planned, the youngest; none before the first plan."""
        return self.machines.names()[self.planned.nodes :] if self.planned.nodes else ()

    @property
    def complete(self) -> bool:
        """Whether everything that is planned is there."""
        observed = self.observed
        return observed.nodes >= self.planned.nodes and observed.executors >= self.planned.executors

    def size(self, nodes: int) -> Size:
        """The size that this many nodes have with all their executors."""
        return Size(nodes, nodes * self.machines.kind.executors)

    def hosts(self) -> list[str]:
        """The node of each executor that takes tasks; Spark keeps some for a while whose node is gone."""
        names = self.machines.names()
        hosts = [self.machines.of(executor) for executor in self.monitor.executors if executor.ready]
        return [name for name in hosts if name in names]
