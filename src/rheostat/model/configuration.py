"""The size of an application: instances per operator, executors, nodes, and the bounds on them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rheostat.model.topology import Topology


@dataclass(frozen=True, slots=True)
class NodeKind:
    """A size of machine that a provider offers."""

    name: str = "small"
    cores: float = 2.0
    slots: int = 2
    executors: int = 1  # processes that share the slots
    memory_mb: float = 4096.0
    startup_seconds: float = 60.0
    price_per_hour: float = 0.0  # in the user's own currency; 0: the price is unknown

    @property
    def slot_cores(self) -> float:
        """CPU that one slot offers: s = node CPU / node slots."""
        return self.cores / self.slots


@dataclass(frozen=True, slots=True)
class Configuration:
    """Parallelism per operator, executors and nodes, as a value.

    >>> Configuration({"split": 2}, executors=1, nodes=1).describe(Configuration({"split": 1}, 1, 1))
    'split 1 -> 2'
    """

    parallelism: Mapping[str, int] = field(hash=False)
    executors: int
    nodes: int

    @property
    def instances(self) -> int:
        """All instances of all operators."""
        return sum(self.parallelism.values())

    def describe(self, before: "Configuration") -> str:
        """Describe what changed since an earlier configuration."""
        changes = [
            f"{name} {before.parallelism.get(name, 0)} -> {count}"
            for name, count in self.parallelism.items()
            if before.parallelism.get(name, 0) != count
        ]
        if before.executors != self.executors:
            changes.append(f"executors {before.executors} -> {self.executors}")
        if before.nodes != self.nodes:
            changes.append(f"nodes {before.nodes} -> {self.nodes}")
        if len(changes) > 8:
            changes[7:] = [f"and {len(changes) - 7} more"]
        return ", ".join(changes) if changes else "no change"


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits that no plan may exceed; each operator's own bounds are in the topology."""

    min_nodes: int = 1
    max_nodes: int = 1000

    def nodes(self, wanted: int) -> int:
        """Clamp a number of nodes to the bounds."""
        return max(self.min_nodes, min(self.max_nodes, wanted))

    def parallelism(self, topology: Topology, wanted: Mapping[str, int]) -> dict[str, int]:
        """Clamp every operator's parallelism to its bounds."""
        bounded = {}
        for operator in topology.operators:
            count = wanted.get(operator.name, operator.min_parallelism)
            bounded[operator.name] = max(operator.min_parallelism, min(operator.max_parallelism, count))
        return bounded
