"""ELYSIUM's operator profile (P2, section 3.2: OCUP), as a line through the origin: slots per row/s."""

from collections.abc import Mapping
from typing import Any

from rheostat.analyze.evaluation import Evaluation
from rheostat.model.observation import Observation
from rheostat.model.topology import Topology


class LinearCosts:
    """The mean over all rows processed so far; before any were processed, the cost stated by the topology.

    A row counts with the time for which it holds an instance: its CPU, and what the operator itself waits.

    >>> from rheostat.model.topology import Operator
    >>> words = Topology("words", (Operator("split", cost_seconds=0.002), Operator("count", 0.001)))
    >>> LinearCosts(words, 1.0, {"costs": {"split": [100.0, 0.5]}}).busy({"split": 1_000, "count": 1_000})
    {'split': 5.0, 'count': 1.0}
    """

    def __init__(
        self, topology: Topology, instance_cores: float, state: Mapping[str, Any] | None = None
    ) -> None:
        self._topology, self._instance_cores = topology, instance_cores
        stored = (state or {}).get("costs", {})
        self._sums: dict[str, list[float]] = {name: list(pair) for name, pair in stored.items()}

    @property
    def state(self) -> dict[str, Any]:
        return {"costs": {name: list(pair) for name, pair in self._sums.items()}}

    def learn(self, observation: Observation, evaluation: Evaluation) -> None:
        for name, measures in observation.operators.items():
            judged = evaluation.operators.get(name)
            if measures.processed and judged is not None and judged.demand > 0:
                rows, seconds = self._sums.get(name, [0.0, 0.0])
                held = measures.processed * judged.busy / judged.demand
                self._sums[name] = [rows + measures.processed, seconds + held]

    def busy(self, rates: Mapping[str, float]) -> dict[str, float]:
        return {name: rate * self._seconds(name) for name, rate in rates.items()}

    def _seconds(self, name: str) -> float:
        rows, seconds = self._sums.get(name, (0.0, 0.0))
        return seconds / rows if rows else self._topology.operator(name).cost_seconds / self._instance_cores
