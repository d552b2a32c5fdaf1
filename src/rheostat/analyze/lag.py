"""How far a stream is behind, computed from two counts: rows that arrived and rows that were processed."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rheostat.workloads import Curve, sample

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Count:
    """A cumulative count of rows over time: both series rise."""

    at: Floats
    rows: Floats

    @staticmethod
    def of(points: Sequence[tuple[float, float]]) -> "Count":
        """Build a count from pairs of a time and the rows up to it."""
        at, rows = np.array(points, dtype=np.float64).reshape(-1, 2).T
        return Count(at, rows)

    @staticmethod
    def of_curve(curve: Curve, seed: int, begins: float, per_second: int = 1) -> "Count":
        """Build the count of a curve's rows from `begins` on, sampled `per_second` times a second."""
        rows = np.cumsum(sample(curve, 1 / per_second, seed)) / per_second
        return Count(begins + np.arange(len(rows) + 1) / per_second, np.concatenate([[0.0], rows]))

    def by(self, times: Floats, *, in_steps: bool = False) -> Floats:
        """Rows up to each of these times; `in_steps` counts rows at their time, without interpolation."""
        if not in_steps:
            return np.interp(times, self.at, self.rows)
        return np.concatenate([[0.0], self.rows])[np.searchsorted(self.at, times, side="right")]

    def when(self, rows: Floats) -> Floats:
        """The last time at which the count was no higher than this many rows."""
        rising = self.rows + 1e-6 * np.arange(len(self.rows))  # during a pause, return its end
        return np.interp(rows + 1e-6 * len(self.rows), rising, self.at)


def lag(times: Floats, arrived: Count, done: Count, *, in_steps: bool) -> Floats:
    """The age of the oldest row that is not yet processed, at each time; 0 if none is waiting.

    >>> arrived, done = Count.of([(0, 0), (10, 100)]), Count.of([(0, 0), (4, 20), (8, 60)])
    >>> lag(np.array([3.0, 4.0, 7.9, 8.0]), arrived, done, in_steps=True).round(1).tolist()
    [3.0, 2.0, 5.9, 2.0]
    """
    reached = done.by(times, in_steps=in_steps)
    waiting = arrived.by(times) - reached > 1e-3
    return np.where(waiting, np.maximum(0.0, times - arrived.when(reached)), 0.0)


def rate(times: Floats, count: Count) -> Floats:
    """Rows per second over the second before each time."""
    return np.asarray(count.by(times) - count.by(times - 1.0))
