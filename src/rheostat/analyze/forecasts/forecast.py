"""A forecast as a value: quantiles of the load over a horizon."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

MEDIAN = 0.5


@dataclass(frozen=True, slots=True)
class Forecast:
    """Quantiles of the mean load of each of the coming steps, in rows/s.

    A method alone knows one level, its expectation (0.5); the others come from calibration, once there
    are enough residuals.

    >>> rising = Forecast(0.0, 60.0, (0.5, 0.9), ((10.0, 12.0), (20.0, 30.0)))
    >>> rising.at(90.0), rising.highest(0.9), rising.highest(0.9, steps=1)
    (15.0, 30.0, 12.0)
    """

    issued_at: float
    step_seconds: float
    levels: tuple[float, ...]  # rising
    values: tuple[tuple[float, ...], ...]  # per step, then per level

    @property
    def steps(self) -> int:
        """How many steps it looks ahead."""
        return len(self.values)

    @property
    def ends_at(self) -> float:
        """The end of its last step."""
        return self.issued_at + self.steps * self.step_seconds

    def knows(self, level: float) -> bool:
        """Whether it states a level."""
        return level in self.levels

    def path(self, level: float = MEDIAN) -> tuple[float, ...]:
        """One quantile of every step."""
        column = self.levels.index(level)
        return tuple(row[column] for row in self.values)

    def at(self, time: float, level: float = MEDIAN) -> float:
        """One quantile at a time, which a step's value holds at its end; beyond the ends, the nearest."""
        ends = self.issued_at + self.step_seconds * np.arange(1, self.steps + 1)
        return float(np.interp(time, ends, self.path(level)))

    def highest(self, level: float = MEDIAN, steps: int | None = None) -> float:
        """The highest of one quantile over the next steps, as P2 provides for it (section 3.2, ILP)."""
        return max(self.path(level)[:steps])


def certain(issued_at: float, step_seconds: float, path: Sequence[float]) -> Forecast:
    """A forecast that states its expectation alone; no load is negative.

    >>> certain(0.0, 60.0, [1.0, -1.0]).values
    ((1.0,), (0.0,))
    """
    return Forecast(issued_at, step_seconds, (MEDIAN,), tuple((max(0.0, float(rate)),) for rate in path))
