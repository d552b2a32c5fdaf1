"""A history at even steps, which is what regressions and networks need."""

import numpy as np

from rheostat.analyze.forecasts.forecaster import History
from rheostat.workloads.curve import FloatArray


def evenly(recent: History, step_seconds: float, count: int | None = None) -> FloatArray | None:
    """The rates at even steps up to the newest, gaps bridged by lines; None if they do not reach back so far.

    >>> evenly([[0.0, 1.0], [60.0, 3.0], [180.0, 5.0]], 60.0)
    array([1., 3., 4., 5.])
    """
    if not recent:
        return None
    times, rates = np.array([at for at, _ in recent]), np.array([rate for _, rate in recent])
    back = round(float(times[-1] - times[0]) / step_seconds) + 1
    if count is not None and back < count:
        return None
    ends = times[-1] - step_seconds * np.arange((count or back) - 1, -1, -1)
    even: FloatArray = np.interp(ends, times, rates)
    return even
