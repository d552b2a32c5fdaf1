"""A simulated run step by step: enough to judge it and to draw it."""

import numpy as np

from rheostat.engines.simulator.deployment import Floats


class Record:
    """Series of equal steps; entry k is the state after step k, entry 0 the start."""

    def __init__(self, load: Floats, step_seconds: float) -> None:
        steps = len(load)
        self.step_seconds = step_seconds
        self.load = load
        self.arrived = np.concatenate([[0.0], np.cumsum(load) * step_seconds])  # rows, cumulative
        self.backlog = np.zeros(steps + 1)
        self.dropped = np.zeros(steps + 1)
        self.nodes = np.zeros(steps, dtype=np.int32)
        self.instances = np.zeros(steps, dtype=np.int32)
        self.price_per_hour = np.zeros(steps)  # of all nodes
        self.steps = 0

    def add(
        self, step: int, backlog: float, dropped: float, nodes: int, instances: int, price: float = 0.0
    ) -> None:
        """Record a step."""
        self.steps = step
        self.backlog[step] = backlog
        self.dropped[step] = dropped
        self.nodes[step - 1] = nodes
        self.instances[step - 1] = instances
        self.price_per_hour[step - 1] = price

    def completed(self) -> Floats:
        """Return the cumulative source rows done."""
        done = (
            self.arrived[: self.steps + 1] - self.backlog[: self.steps + 1] - self.dropped[: self.steps + 1]
        )
        return np.asarray(np.maximum.accumulate(done), dtype=np.float64)

    def throughput(self) -> Floats:
        """Return the source rows/s done in each step."""
        return np.diff(self.completed()) / self.step_seconds

    def lag(self) -> Floats:
        """Return the age in seconds of the oldest waiting row after each step (first in, first out)."""
        front = self.arrived[1 : self.steps + 1] - self.backlog[1 : self.steps + 1]
        times = np.arange(1, self.steps + 1) * self.step_seconds
        arrived_at = np.interp(
            front, self.arrived[: self.steps + 1], np.arange(self.steps + 1) * self.step_seconds
        )
        return np.where(self.backlog[1 : self.steps + 1] > 1e-6, times - arrived_at, 0.0)

    def lag_at(self, step: int) -> float:
        """Return the lag after a step, in logarithmic time."""
        if step == 0 or self.backlog[step] <= 1e-6:
            return 0.0
        front = self.arrived[step] - self.backlog[step]
        after = int(np.searchsorted(self.arrived[: step + 1], front, side="right"))
        before = max(0, after - 1)
        rows = self.arrived[min(after, step)] - self.arrived[before]
        part = (front - self.arrived[before]) / rows if rows > 0 else 0.0
        return float((step - before - part) * self.step_seconds)

    def mean_rates(self, start: float, end: float) -> tuple[float, float]:
        """Load and throughput in rows/s between two times."""
        first, last = round(start / self.step_seconds), round(end / self.step_seconds)
        if last <= first:
            return float(self.load[min(last, len(self.load) - 1)]), 0.0
        done = [self.arrived[k] - self.backlog[k] - self.dropped[k] for k in (first, last)]
        seconds = (last - first) * self.step_seconds
        return float(self.arrived[last] - self.arrived[first]) / seconds, float(done[1] - done[0]) / seconds
