"""ELYSIUM's operator profile (P2, section 3.2: OCUP), as a line through the origin: CPU per row."""

from collections.abc import Mapping
from typing import Any

from rheostat.analyze.evaluation import Evaluation
from rheostat.model.observation import Observation
from rheostat.model.topology import Topology


class LinearCosts:
    """The mean over all rows processed so far; before any were processed, the cost stated by the topology.

    >>> from rheostat.model.topology import Operator
    >>> words = Topology("words", (Operator("split", cost_seconds=0.002), Operator("count", 0.001)))
    >>> LinearCosts(words, 1.0, {"costs": {"split": [100.0, 0.5]}}).busy({"split": 1_000, "count": 1_000})
    {'split': 5.0, 'count': 1.0}
    """

    def __init__(self, topology: Topology, slot_cores: float, state: Mapping[str, Any] | None = None) -> None:
        self._topology, self._slot_cores = topology, slot_cores
        stored = (state or {}).get("costs", {})
        self._sums: dict[str, list[float]] = {name: list(pair) for name, pair in stored.items()}

    @property
    def state(self) -> dict[str, Any]:
        return {"costs": {name: list(pair) for name, pair in self._sums.items()}}

    def learn(self, observation: Observation, evaluation: Evaluation) -> None:
        for name, measures in observation.operators.items():
            if measures.processed and measures.row_cpu_seconds is not None:
                rows, cpu = self._sums.get(name, [0.0, 0.0])
                self._sums[name] = [rows + measures.processed, cpu + measures.row_cpu_seconds]

    def busy(self, rates: Mapping[str, float]) -> dict[str, float]:
        return {name: rate * self._cost(name) / self._slot_cores for name, rate in rates.items()}

    def _cost(self, name: str) -> float:
        rows, cpu = self._sums.get(name, (0.0, 0.0))
        return cpu / rows if rows > 0 else self._topology.operator(name).cost_seconds
