"""How rows flow through a deployment, second by second: the books that every execution model keeps.

Rows received and processed per operator, CPU per group of instances, and
the backlog in source rows. One step costs a handful of array operations, linear in operators.
"""

from abc import ABC, abstractmethod

import numpy as np

from rheostat.analyze.rates import demand
from rheostat.engines.simulator.deployment import Deployment, Floats
from rheostat.engines.simulator.settings import Settings
from rheostat.model.topology import Topology

TINY = 1e-12


class Flow(ABC):
    """The books, and what every execution model must do with a step."""

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
        """Begin a new window."""
        self.received = np.zeros(self.size)
        self.processed = np.zeros(self.size)
        self.busy = np.zeros(self.size)
        self.arrivals: list[Floats] = []  # rows offered to the operators, step by step
        groups = len(self.deployment.operator) if hasattr(self, "deployment") else 0
        self.cpu = np.zeros(groups)

    def deploy(self, deployment: Deployment) -> None:
        """Run on another deployment from the next step on."""
        self.deployment = deployment
        self.reset()
        self.prepare()

    def vary(self, factors: Floats | None) -> None:
        """Make every operator dearer or cheaper from now on."""
        self.cost = self.stated_cost if factors is None else self.stated_cost * factors
        self.prepare()

    @abstractmethod
    def prepare(self) -> None:
        """Work out what depends on the deployment and the costs only."""

    @abstractmethod
    def step(self, offered: Floats, paused: bool) -> None:
        """Take one step with the rows offered at each source."""

    @abstractmethod
    def close(self) -> None:
        """Complete the window's books."""

    @abstractmethod
    def backlog(self) -> float:
        """Source rows that wait."""

    @abstractmethod
    def waiting(self) -> list[float | None]:
        """Rows in each operator's queue; None where it has none."""

    def batch_seconds(self) -> float | None:
        """Mean duration of the window's batches, where there are batches."""
        return None
