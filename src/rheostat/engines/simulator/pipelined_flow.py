"""How rows flow in Real-Time Mode."""

import numpy as np

from rheostat.engines.simulator.deployment import Floats, totals
from rheostat.engines.simulator.flow import Flow
from rheostat.engines.simulator.settings import Settings
from rheostat.model.topology import Topology


class PipelinedFlow(Flow):
    """Real-Time Mode: rows are admitted only as fast as every instance and node can take them."""

    def __init__(self, topology: Topology, settings: Settings) -> None:
        self.queue = np.zeros(len(topology.sources))
        super().__init__(topology, settings)

    def prepare(self) -> None:
        """Limits, linear in the admitted rates: each instance within a core, each node within its room."""
        d = self.deployment
        per_instance = self.per_source * (self.cost / np.maximum(d.parallelism, 1.0))  # source x operator
        limit = np.minimum(1.0, d.room)[d.node]
        loads = per_instance[:, d.operator] / limit
        nodes = np.stack([totals(d.node, row[d.operator] * d.count, len(d.room)) for row in per_instance])
        pressure = np.concatenate([loads, nodes / d.room], axis=1).T / self.step_seconds
        self.pressure = np.unique(pressure, axis=0) if len(pressure) < 2000 else pressure
        self.per_instance = per_instance

    def step(self, offered: Floats, paused: bool) -> None:
        wanted = self.queue + offered
        if paused:
            admitted = np.zeros_like(wanted)
        else:
            pressure = (self.pressure @ wanted).max()
            admitted = wanted if pressure <= 1.0 else wanted / pressure
        self.queue = wanted - admitted
        self.arrivals.append(offered)
        self.admitted += admitted

    def reset(self) -> None:
        super().reset()
        self.admitted = np.zeros(len(self.topology.sources))

    def close(self) -> None:
        """Book the window: everything admitted went through all operators."""
        d = self.deployment
        rows = self.admitted @ self.per_source
        self.processed = rows
        self.received = rows.copy()
        self.received[self.sources] = np.sum(self.arrivals, axis=0) if self.arrivals else 0.0
        self.cpu = (rows * self.cost / np.maximum(d.parallelism, 1.0))[d.operator] * d.count
        speed = np.minimum(1.0, d.room)[d.node]
        self.busy = totals(d.operator, self.cpu / speed, self.size)

    def backlog(self) -> float:
        return float(self.queue.sum())

    def waiting(self) -> list[float | None]:
        queues: list[float | None] = [None] * self.size
        for position, operator in enumerate(self.sources):
            queues[operator] = float(self.queue[position])
        return queues
