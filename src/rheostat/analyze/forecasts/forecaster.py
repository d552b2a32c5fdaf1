"""The protocol of a forecaster, and the forecast it returns.

To add one: write it as a file in this folder and name it in FORECASTERS (`__init__.py`). Then policies find
it by that name, and tests/contracts/test_forecasters.py tests it.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from rheostat.workloads.curve import FloatArray

MAX_SAMPLES = 240  # per path; a path of a few minutes has one per second

History = Sequence[Sequence[float]]  # seconds and rows/s, oldest first: plain JSON data for a policy's memory


class Forecast(ABC):
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


class Forecaster(Protocol):
    """Makes a forecast from a history.

    It has no state of its own: the policy remembers the history, and what was learned before the run is in
    the forecaster's fields.
    """

    def forecast(self, history: History, local_start: float = 0.0) -> Forecast | None:
        """The forecast, or None if the history is too short.

        `local_start` is the local time at which the run began, in seconds since midnight on Monday.
        """


def moments(start: float, end: float) -> FloatArray:
    """Evenly spaced times, both ends included.

    >>> moments(0.0, 3.0).tolist()
    [0.0, 1.0, 2.0, 3.0]
    """
    return np.linspace(start, end, 1 + min(MAX_SAMPLES, max(1, round(end - start))))
