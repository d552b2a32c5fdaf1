"""A load that is expected to repeat, aligned with the time of the run (P0, section 5.3)."""

from dataclasses import dataclass

import numpy as np

from rheostat.analyze.forecasts.expectation import Expectation, moments
from rheostat.analyze.forecasts.forecast import Forecast, certain
from rheostat.analyze.forecasts.forecaster import Forecaster, Memory
from rheostat.workloads import Curve, parse_curve
from rheostat.workloads.curve import FloatArray

HOUR, DAY, WEEK = 3_600.0, 86_400.0, 7 * 86_400.0


@dataclass(frozen=True)
class Schedule(Forecaster):
    """One period of the expected load; measurements do not change it.

    A day and a week follow local time: they begin at midnight and on Monday, or at the curve's own first
    timestamp. Any other period begins with the run.
    """

    curve: Curve

    @staticmethod
    def parse(text: str) -> "Schedule":
        """Parse a load curve or a trace of one period."""
        return Schedule(parse_curve(text))

    @property
    def clock_period(self) -> float | None:
        """A day or a week, if the curve lasts that long; a trace of hourly rows ends an hour earlier."""
        lasts = self.curve.duration_seconds
        return next((period for period in (DAY, WEEK) if period - HOUR <= lasts <= period), None)

    def observe(self, memory: Memory, at: float, rate: float, local_start: float = 0.0) -> Memory:
        return memory

    def forecast(self, memory: Memory, now: float, steps: int, local_start: float = 0.0) -> Forecast:
        expected = self.expected(local_start)
        middles = [now + self.step_seconds * (step - 0.5) for step in range(1, steps + 1)]
        return certain(now, self.step_seconds, [expected.at(middle) for middle in middles])

    def expected(self, local_start: float = 0.0) -> "ScheduledLoad":
        """The load at any time of a run that began at this local time."""
        if self.clock_period is None:
            return ScheduledLoad(self.curve, self.curve.duration_seconds, 0.0)
        return ScheduledLoad(self.curve, self.clock_period, local_start - self.curve.begins_at)


@dataclass(frozen=True)
class ScheduledLoad(Expectation):
    """A curve that repeats in every period.

    >>> step = Schedule.parse("step:low=1:high=9:duration=60:start=20:end=40").expected()
    >>> step.path(78, 82).tolist()
    [1.0, 1.0, 9.0, 9.0, 9.0]
    """

    curve: Curve
    period_seconds: float
    offset: float  # seconds from the beginning of a period to that of the run

    def at(self, time: float) -> float:
        return float(self._rate(np.array([time]))[0])

    def path(self, start: float, end: float) -> FloatArray:
        return self._rate(moments(start, end))

    def _rate(self, times: FloatArray) -> FloatArray:
        return self.curve.rate((times + self.offset) % self.period_seconds)
