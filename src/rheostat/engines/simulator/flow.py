"""How rows flow through a deployment, step by step: the accounts that every execution model keeps.

These are the rows received and processed per operator, the CPU per group of instances, and the backlog in
source rows. One step costs a handful of array operations, linear in operators.
"""

from abc import ABC, abstractmethod

import numpy as np

from rheostat.analyze.rates import demand
from rheostat.engines.simulator.deployment import Deployment, Floats
from rheostat.engines.simulator.settings import Settings
from rheostat.model.topology import Topology

TINY = 1e-12


class Flow(ABC):
    """The accounts, and what every execution model does in a step."""

    def __init__(self, topology: Topology, settings: Settings) -> None:
        self.topology, self.settings = topology, settings
        self.step_seconds = settings.step_seconds
        self.cost = np.array([max(o.cost_seconds, TINY) for o in topology.operators])
        self.stated_cost = self.cost
        self.size = len(topology.operators)
        index = {name: i for i, name in enumerate(topology.names)}
        self.sources = np.array([index[name] for name in topology.sources], dtype=np.intp)
        # Rows at each operator per row at each source.
        self.per_source = np.array(
            [list(demand(topology, {name: 1.0}).values()) for name in topology.sources], dtype=np.float64
        )
        self.deployment: Deployment
        self.dropped = 0.0  # source rows lost so far
        self.reset()

    def reset(self) -> None:
        """Start a new window."""
        self.received = np.zeros(self.size)
        self.processed = np.zeros(self.size)
        self.busy = np.zeros(self.size)
        self.arrivals: list[Floats] = []  # rows offered to the operators, step by step
        groups = len(self.deployment.operator) if hasattr(self, "deployment") else 0
        self.cpu = np.zeros(groups)

    def deploy(self, deployment: Deployment) -> None:
        """Use another deployment from the next step on."""
        self.deployment = deployment
        self.reset()
        self.prepare()

    def vary(self, factors: Floats | None) -> None:
        """Change the cost of every operator from now on."""
        self.cost = self.stated_cost if factors is None else self.stated_cost * factors
        self.prepare()

    @abstractmethod
    def prepare(self) -> None:
        """Compute what depends only on the deployment and the costs."""

    @abstractmethod
    def step(self, offered: Floats, paused: bool) -> None:
        """Take one step with the rows offered at each source."""

    @abstractmethod
    def close(self) -> None:
        """Complete the window's accounts."""

    @abstractmethod
    def backlog(self) -> float:
        """Return the source rows that wait."""

    @abstractmethod
    def waiting(self) -> list[float | None]:
        """Return the rows in each operator's queue; None without a queue."""

    def batch_seconds(self) -> float | None:
        """Return the mean duration of the window's batches, if any."""
        return None
