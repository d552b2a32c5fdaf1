"""Costs as stated by the topology (ELYSIUM's exact profile)."""

from collections.abc import Mapping
from typing import Any

from rheostat.analyze.evaluation import Evaluation
from rheostat.model.observation import Observation
from rheostat.model.topology import Topology


class StatedCosts:
    """CPU as stated; only what an operator itself waits, which no topology states, is as last measured.

    >>> from rheostat.model.topology import Operator
    >>> StatedCosts(Topology("words", (Operator("split", cost_seconds=0.002),)), 0.5).busy({"split": 1_000})
    {'split': 4.0}
    """

    def __init__(
        self, topology: Topology, instance_cores: float, state: Mapping[str, Any] | None = None
    ) -> None:
        self._topology, self._instance_cores = topology, instance_cores
        self._waits: dict[str, float] = dict((state or {}).get("waits", {}))  # seconds per row

    @property
    def state(self) -> dict[str, Any]:
        return {"waits": dict(self._waits)}

    def learn(self, observation: Observation, evaluation: Evaluation) -> None:
        self._waits |= {
            name: evaluation.waits(name) / judged.demand
            for name, judged in evaluation.operators.items()
            if judged.demand > 0
        }

    def busy(self, rates: Mapping[str, float]) -> dict[str, float]:
        return {name: rate * self._seconds(name) for name, rate in rates.items()}

    def _seconds(self, name: str) -> float:
        cpu = self._topology.operator(name).cost_seconds
        return cpu / self._instance_cores + self._waits.get(name, 0.0)
