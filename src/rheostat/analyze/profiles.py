"""ELYSIUM's profiles (P2, section 3.2): what an instance and a node would use at a given rate.

Here they are exact (as the topology states) or linear (learned from the windows seen so far); both are
plain numbers, so a policy keeps them in its memory as JSON.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rheostat.model.observation import Observation
from rheostat.model.topology import Topology


@dataclass(frozen=True, slots=True)
class Overhead:
    """OP: a node's CPU (in cores) as a function of the sum of its instances' CPU."""

    idle: float = 0.0
    slope: float = 1.0

    def node_cpu(self, instances_cpu: float) -> float:
        """Cores that the node uses."""
        return self.idle + self.slope * instances_cpu

    def room(self, cores: float) -> float:
        """Cores left for instances when the node is full."""
        return max(0.0, (cores - self.idle) / self.slope)


class Profiler:
    """OCUP and OP as running sums: CPU per row and operator, and the node overhead's line."""

    def __init__(self, memory: Mapping[str, Any] | None = None) -> None:
        stored = memory or {}
        self.sums: dict[str, list[float]] = {
            name: list(pair) for name, pair in stored.get("costs", {}).items()
        }
        self.nodes: list[float] = list(stored.get("nodes", [0.0] * 5))

    def learn(self, observation: Observation) -> None:
        """Take one window in."""
        for name, measures in observation.operators.items():
            if measures.processed and measures.cpu_seconds is not None:
                rows, cpu = self.sums.get(name, [0.0, 0.0])
                self.sums[name] = [rows + measures.processed, cpu + measures.cpu_seconds]
        slots_used = instance_utilisation(observation)
        for node in observation.nodes:
            if node.cpu is not None and node.name in slots_used:
                inside, used = slots_used[node.name] * node.cores / node.slots, node.cpu * node.cores
                for index, value in enumerate((1.0, inside, used, inside * inside, inside * used)):
                    self.nodes[index] += value

    def cost(self, topology: Topology, name: str) -> float:
        """CPU seconds per row: learned, or as stated until something was seen."""
        rows, cpu = self.sums.get(name, (0.0, 0.0))
        return cpu / rows if rows > 0 else topology.operator(name).cost_seconds

    def overhead(self) -> Overhead:
        """The line through (instances' CPU, node CPU); the identity until different points were seen."""
        count, x, y, xx, xy = self.nodes
        spread = count * xx - x * x
        if count < 3 or spread <= 1e-6 * count * max(xx, 1e-12):
            return Overhead()
        slope = (count * xy - x * y) / spread
        return Overhead(max(0.0, (y - slope * x) / count), max(1.0, slope))

    def memory(self) -> dict[str, Any]:
        """The profile as plain JSON data."""
        return {"costs": self.sums, "nodes": self.nodes}


def instance_utilisation(observation: Observation) -> dict[str, float]:
    """The sum of the instances' utilisation on each node, where it was measured."""
    totals: dict[str, float] = {}
    for measures in observation.operators.values():
        for instance in measures.instances:
            if instance.utilisation is not None:
                totals[instance.node] = totals.get(instance.node, 0.0) + instance.utilisation
    return totals


def even_node_loads(instance_loads: Mapping[str, tuple[int, float]], nodes: int) -> NDArray[np.float64]:
    """Deal all instances (count, load of each) over the nodes in turn, as Storm's even scheduler does.

    >>> even_node_loads({"a": (3, 1.0), "b": (1, 0.5)}, 2)
    array([2. , 1.5])
    """
    counts = np.array([count for count, _ in instance_loads.values()])
    loads = np.repeat(np.array([load for _, load in instance_loads.values()], dtype=np.float64), counts)
    dealt = np.bincount(np.arange(len(loads)) % nodes, weights=loads, minlength=nodes)
    return np.asarray(dealt, dtype=np.float64)
