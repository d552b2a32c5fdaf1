"""Costs as stated by the topology (ELYSIUM's exact profile)."""

from collections.abc import Mapping
from typing import Any

from rheostat.analyze.evaluation import Evaluation
from rheostat.model.observation import Observation
from rheostat.model.topology import Topology


class StatedCosts:
    """Uses the stated costs and learns nothing.

    >>> from rheostat.model.topology import Operator
    >>> StatedCosts(Topology("words", (Operator("split", cost_seconds=0.002),)), 0.5).busy({"split": 1_000})
    {'split': 4.0}
    """

    def __init__(
        self, topology: Topology, instance_cores: float, state: Mapping[str, Any] | None = None
    ) -> None:
        self._topology, self._instance_cores = topology, instance_cores

    @property
    def state(self) -> dict[str, Any]:
        return {}

    def learn(self, observation: Observation, evaluation: Evaluation) -> None:
        pass

    def busy(self, rates: Mapping[str, float]) -> dict[str, float]:
        return {
            name: rate * self._topology.operator(name).cost_seconds / self._instance_cores
            for name, rate in rates.items()
        }
