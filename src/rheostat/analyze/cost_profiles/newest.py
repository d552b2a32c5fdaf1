"""Costs measured in the newest window alone (AUTOSCALE)."""

from collections.abc import Mapping

from rheostat.analyze.evaluation import Evaluation
from rheostat.model.observation import Observation
from rheostat.model.topology import Topology


class NewestCosts:
    """For how long a row holds its instance, as last measured; before that, the cost stated by the topology.

    What an operator itself waits counts (P3, equation 4: latency without the queue), but not the time for
    which threads wait for each other's cores: a row would not take it in a slot of its own.
    """

    def __init__(
        self, topology: Topology, instance_cores: float, state: Mapping[str, float] | None = None
    ) -> None:
        self._costs = {o.name: o.cost_seconds / instance_cores for o in topology.operators}
        self._costs |= {name: cost for name, cost in (state or {}).items() if name in self._costs}

    @property
    def state(self) -> dict[str, float]:
        return dict(self._costs)

    def learn(self, observation: Observation, evaluation: Evaluation) -> None:
        self._costs |= {
            name: judged.busy / judged.demand
            for name, judged in evaluation.operators.items()
            if judged.demand > 0
        }

    def busy(self, rates: Mapping[str, float]) -> dict[str, float]:
        return {name: rate * self._costs[name] for name, rate in rates.items()}
