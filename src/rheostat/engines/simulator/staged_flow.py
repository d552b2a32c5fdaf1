"""How rows flow in micro-batches."""

import numpy as np

from rheostat.engines.simulator.deployment import Floats, totals
from rheostat.engines.simulator.pipelined_flow import PipelinedFlow
from rheostat.engines.simulator.settings import Settings
from rheostat.model.topology import Topology


class StagedFlow(PipelinedFlow):
    """Micro-batch: a batch takes everything that waits; its stages take turns on all slots."""

    def __init__(self, topology: Topology, settings: Settings) -> None:
        self.batch = np.zeros(len(topology.sources))  # rows in the batch that runs
        self.batch_ends = 0.0
        self.running = False
        self.next_trigger = 0.0
        self.now = 0.0
        super().__init__(topology, settings)

    def reset(self) -> None:
        super().reset()
        self.durations: list[float] = []

    def prepare(self) -> None:
        """Seconds per row of each stage: tasks run in waves, each task within a core and its node's share."""
        d = self.deployment
        tasks = np.maximum(d.parallelism, 1.0)
        at_once = np.minimum(tasks, d.slots)
        speed = np.minimum(1.0, d.room.sum() / at_once)  # cores per task
        waves = np.ceil(tasks / max(d.slots, 1) - 1e-9)
        self.seconds_per_row = self.cost / tasks * waves / speed
        self.speed = speed

    def duration(self, rows: Floats) -> float:
        """How long a batch of these source rows takes."""
        stages = (rows @ self.per_source) * self.seconds_per_row
        return float(stages.sum()) + self.size * self.settings.stage_overhead_seconds

    def step(self, offered: Floats, paused: bool) -> None:
        start, end = self.now, self.now + self.step_seconds
        self.now = end
        self.arrivals.append(offered)
        if paused:  # the running batch is replayed after the pause
            self.queue = self.queue + offered
            self.batch_ends += self.step_seconds
            return
        at = start
        while True:
            if self.running:
                if self.batch_ends > end:
                    break
                at = self.batch_ends
                self.admitted += self.batch
                self.batch = np.zeros_like(self.batch)
                self.running = False
                self.next_trigger = max(self.next_trigger, at)
            if max(self.next_trigger, at) >= end:
                break
            at = max(self.next_trigger, at)
            arrived = offered * ((at - start) / self.step_seconds)  # the part of this step that came before
            rows = self.queue + arrived
            self.queue, offered = np.zeros_like(rows), offered - arrived
            self.batch, self.running = rows, True
            took = self.duration(rows)
            self.durations.append(took)
            self.batch_ends = at + took
            interval = self.settings.trigger_seconds
            self.next_trigger = (np.floor(at / interval + 1e-9) + 1) * interval
        self.queue = self.queue + offered

    def close(self) -> None:
        super().close()
        d = self.deployment
        self.busy = totals(d.operator, self.cpu, self.size) / self.speed

    def backlog(self) -> float:
        return float(self.queue.sum() + self.batch.sum())

    def batch_seconds(self) -> float | None:
        return float(np.mean(self.durations)) if self.durations else None
