"""An expected load as a function of time: what a line or a schedule says, without any doubt about it."""

from abc import ABC, abstractmethod

import numpy as np

from rheostat.workloads.curve import FloatArray

MAX_SAMPLES = 240  # per path; a path of a few minutes has one per second


class Expectation(ABC):
    """The expected load at any time of the run."""

    @abstractmethod
    def at(self, time: float) -> float:
        """Rows/s at a time."""

    def path(self, start: float, end: float) -> FloatArray:
        """Rows/s from start to end, both included, about once a second."""
        return np.array([self.at(float(time)) for time in moments(start, end)])

    def change(self, start: float, end: float) -> float:
        """By how many rows/s the load rises from start to end; negative if it falls."""
        return self.at(end) - self.at(start)


def moments(start: float, end: float) -> FloatArray:
    """Evenly spaced times, both ends included.

    >>> moments(0.0, 3.0).tolist()
    [0.0, 1.0, 2.0, 3.0]
    """
    return np.linspace(start, end, 1 + min(MAX_SAMPLES, max(1, round(end - start))))
