"""A load that is expected to repeat, and where in it a moment of the run falls (P0, section 5.3)."""

from dataclasses import dataclass

import numpy as np

from rheostat.workloads import Curve
from rheostat.workloads.curve import FloatArray

HOUR, DAY, WEEK = 3_600.0, 86_400.0, 7 * 86_400.0
MOST_SAMPLES = 240  # of one look at the schedule; a look of some minutes sees every second


@dataclass(frozen=True, slots=True)
class Schedule:
    """One period of the expected load.

    A day and a week follow the local time: they begin at midnight and on Monday, or where the curve's own
    timestamps begin. Any other period begins with the run.
    """

    curve: Curve

    @property
    def clock_period(self) -> float | None:
        """A day or a week, where the curve lasts so long; a trace of hourly rows ends an hour earlier."""
        lasts = self.curve.duration_seconds
        return next((period for period in (DAY, WEEK) if period - HOUR <= lasts <= period), None)

    def between(self, start: float, end: float, local_start: float) -> FloatArray:
        """The expected rows/s from one moment of the run to another, both included.

        >>> from rheostat.workloads import parse_curve
        >>> step = Schedule(parse_curve("step:low=1:high=9:duration=60:start=20:end=40"))
        >>> step.between(78, 82, local_start=0.0).tolist()
        [1.0, 1.0, 9.0, 9.0, 9.0]
        """
        period, offset = self.curve.duration_seconds, 0.0
        if self.clock_period is not None:
            period, offset = self.clock_period, local_start - self.curve.begins_at
        count = 1 + min(MOST_SAMPLES, max(1, round(end - start)))
        return self.curve.rate((np.linspace(start, end, count) + offset) % period)
