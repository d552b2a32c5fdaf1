"""ELYSIUM's node profile (P2, section 3.2: OP): what a node uses beyond its instances."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rheostat.model.observation import Observation


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


class OverheadProfile:
    """OP, learned: a line through (instances' CPU, node CPU), from running sums."""

    def __init__(self, state: Mapping[str, Any] | None = None) -> None:
        self._sums: list[float] = list((state or {}).get("nodes", [0.0] * 5))

    @property
    def state(self) -> dict[str, Any]:
        """What was learned, as plain JSON data."""
        return {"nodes": list(self._sums)}

    def learn(self, observation: Observation) -> None:
        """Learn from a window."""
        busy = instance_utilisation(observation)
        for node in observation.nodes:
            if node.cpu is not None and node.name in busy:
                inside, used = busy[node.name] * min(1.0, node.cores), node.cpu * node.cores
                for index, value in enumerate((1.0, inside, used, inside * inside, inside * used)):
                    self._sums[index] += value

    def overhead(self) -> Overhead:
        """The fitted line; the identity until distinct points were measured."""
        count, x, y, xx, xy = self._sums
        spread = count * xx - x * x
        if count < 3 or spread <= 1e-6 * count * max(xx, 1e-12):
            return Overhead()
        slope = (count * xy - x * y) / spread
        return Overhead(max(0.0, (y - slope * x) / count), max(1.0, slope))


def instance_utilisation(observation: Observation) -> dict[str, float]:
    """The sum of the instances' utilisation on each node, if it was measured."""
    totals: dict[str, float] = {}
    for measures in observation.operators.values():
        for instance in measures.instances:
            if instance.utilisation is not None:
                totals[instance.node] = totals.get(instance.node, 0.0) + instance.utilisation
    return totals


def even_node_loads(instance_loads: Mapping[str, tuple[int, float]], nodes: int) -> NDArray[np.float64]:
    """Distribute all instances (count, load of each) over the nodes in turn, as Storm's even scheduler does.

    >>> even_node_loads({"a": (3, 1.0), "b": (1, 0.5)}, 2)
    array([2. , 1.5])
    """
    counts = np.array([count for count, _ in instance_loads.values()])
    loads = np.repeat(np.array([load for _, load in instance_loads.values()], dtype=np.float64), counts)
    dealt = np.bincount(np.arange(len(loads)) % nodes, weights=loads, minlength=nodes)
    return np.asarray(dealt, dtype=np.float64)
