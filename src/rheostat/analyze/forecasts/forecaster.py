"""The protocol of a forecaster.

To add one: write it as a file in this folder and name it in FORECASTERS (`__init__.py`). Then policies and
`rheostat forecast backtest` find it by that name, and tests/contracts/test_forecasters.py tests it.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from rheostat.analyze.forecasts.forecast import Forecast

Memory = Mapping[str, Any]  # plain JSON data: it is kept in a policy's memory
History = Sequence[Sequence[float]]  # seconds and rows/s, oldest first: plain JSON data


@dataclass(frozen=True)
class Forecaster(ABC):
    """Makes forecasts from what it observed.

    It has no state of its own: what it observed is in the memory, what was learned before the run in its
    fields. A rate is the mean of the step that ends at its time. A step that was not measured is not
    observed at all, for missing is not zero.
    """

    step_seconds: float = field(default=60.0, kw_only=True)

    @abstractmethod
    def observe(self, memory: Memory, at: float, rate: float, local_start: float = 0.0) -> Memory:
        """The next memory.

        `local_start` is the local time at which the run began, in seconds since midnight on Monday.
        """

    @abstractmethod
    def forecast(self, memory: Memory, now: float, steps: int, local_start: float = 0.0) -> Forecast | None:
        """The load of the steps after now, or None if too little is known."""

    def paced(self, step_seconds: float, day_seconds: float = 86_400.0) -> Self:
        """The forecaster for steps, and for days, of another length."""
        return replace(self, step_seconds=step_seconds)

    @property
    def needs_training(self) -> bool:
        """Whether it knows nothing before it is trained."""
        return False

    def trained(self, history: History, local_start: float = 0.0) -> Self:
        """The forecaster with what it learns from an earlier load; most learn as they observe."""
        return self


def observe_all(forecaster: Forecaster, memory: Memory, history: History, local_start: float = 0.0) -> Memory:
    """The memory after a whole history."""
    for at, rate in history:
        memory = forecaster.observe(memory, at, rate, local_start)
    return memory


def brief(value: float) -> float:
    """A number in few digits: the journal stores a policy's memory in every turn.

    >>> brief(1234.56789)
    1234.57
    """
    return float(f"{value:.6g}")


def keep(memory: Memory, at: float, rate: float, seconds: float) -> list[list[float]]:
    """The recent part of a history that a memory holds, with one more point."""
    return [*(point for point in memory.get("recent", ()) if point[0] > at - seconds), [at, rate]]
