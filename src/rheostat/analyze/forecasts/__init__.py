"""Forecasts of the load. `forecaster.py` has the protocol; each forecaster has its own file."""

from collections.abc import Callable, Mapping

from rheostat.analyze.forecasts.forecaster import Forecast, Forecaster, History
from rheostat.analyze.forecasts.line import LeastSquares
from rheostat.analyze.forecasts.schedule import Schedule
from rheostat.model.errors import UserError, nearest

FORECASTERS: Mapping[str, Callable[[str], Forecaster]] = {
    "line": LeastSquares.parse,
    "schedule": Schedule.parse,
}

__all__ = ["FORECASTERS", "Forecast", "Forecaster", "History", "LeastSquares", "Schedule", "find_forecaster"]


def find_forecaster(spec: str) -> Forecaster:
    """Build a forecaster from its name and, after a colon, its parameters.

    >>> find_forecaster("line")
    LeastSquares(points=3)
    >>> find_forecaster("schedule:step:low=1:high=9").forecast([]).at(0.0)
    1.0
    """
    name, _, rest = spec.strip().partition(":")
    if name not in FORECASTERS:
        raise UserError(f"unknown forecast {name!r}{nearest(name, FORECASTERS)}")
    return FORECASTERS[name](rest)
