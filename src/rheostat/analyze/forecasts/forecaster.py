"""What a forecaster is, and what a forecast answers.

To add one: write it in one file of this folder and name it in FORECASTERS (`__init__.py`). Then policies find
it by that name, and tests/contracts/test_forecasters.py tries it.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from rheostat.workloads.curve import FloatArray

MOST_SAMPLES = 240  # of one path; a path of some minutes has every second

History = Sequence[Sequence[float]]  # seconds and rows/s, the oldest first: plain JSON data for a memory


class Forecast(ABC):
    """The load that is expected, at any moment of the run."""

    @abstractmethod
    def at(self, time: float) -> float:
        """Rows/s at a moment."""

    def path(self, start: float, end: float) -> FloatArray:
        """Rows/s from one moment to another, both included, about once a second."""
        return np.array([self.at(float(time)) for time in moments(start, end)])

    def change(self, start: float, end: float) -> float:
        """By how many rows/s the load will have risen from one moment to another; negative where it falls."""
        return self.at(end) - self.at(start)


class Forecaster(Protocol):
    """Makes a forecast from a history.

    It keeps nothing itself: what it saw is the history, which a policy remembers, and what it learned before
    the run is in its own fields.
    """

    def forecast(self, history: History, local_start: float = 0.0) -> Forecast | None:
        """What to expect, or None where the history is too short to say.

        `local_start` is the local time at which the run began, in seconds since Monday's midnight.
        """


def moments(start: float, end: float) -> FloatArray:
    """Evenly spaced times, both ends included.

    >>> moments(0.0, 3.0).tolist()
    [0.0, 1.0, 2.0, 3.0]
    """
    return np.linspace(start, end, 1 + min(MOST_SAMPLES, max(1, round(end - start))))
