"""Costs measured in the newest window alone (AUTOSCALE)."""

from collections.abc import Mapping

from rheostat.analyze.evaluation import Evaluation
from rheostat.model.observation import Observation
from rheostat.model.topology import Topology


class NewestCosts:
    """CPU per row as last measured; before that, the cost stated by the topology.

    It uses CPU time, because a row takes longer while threads share cores than it would in a slot of its
    own.
    """

    def __init__(
        self, topology: Topology, slot_cores: float, state: Mapping[str, float] | None = None
    ) -> None:
        self._slot_cores = slot_cores
        self._costs = {operator.name: operator.cost_seconds for operator in topology.operators}
        self._costs |= {name: cost for name, cost in (state or {}).items() if name in self._costs}

    @property
    def state(self) -> dict[str, float]:
        return dict(self._costs)

    def learn(self, observation: Observation, evaluation: Evaluation) -> None:
        self._costs |= {name: operator.cost_seconds for name, operator in evaluation.operators.items()}

    def busy(self, rates: Mapping[str, float]) -> dict[str, float]:
        return {name: rate * self._costs[name] / self._slot_cores for name, rate in rates.items()}
