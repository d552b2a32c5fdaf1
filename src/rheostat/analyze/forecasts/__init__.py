"""Forecasts of the load. `forecaster.py` has the protocol; each forecaster has its own file."""

from collections.abc import Callable, Mapping

from rheostat.analyze.forecasts.autoregression import Autoregression
from rheostat.analyze.forecasts.best import Best
from rheostat.analyze.forecasts.expectation import Expectation
from rheostat.analyze.forecasts.forecast import Forecast
from rheostat.analyze.forecasts.forecaster import Forecaster, History, Memory
from rheostat.analyze.forecasts.last import Last
from rheostat.analyze.forecasts.line import LeastSquares
from rheostat.analyze.forecasts.network import Network
from rheostat.analyze.forecasts.schedule import Schedule
from rheostat.analyze.forecasts.season import Season
from rheostat.analyze.forecasts.trend import Trend
from rheostat.model.errors import UserError, nearest

FORECASTERS: Mapping[str, Callable[[str], Forecaster]] = {
    "last": Last.parse,
    "line": LeastSquares.parse,
    "trend": Trend.parse,
    "season": Season.parse,
    "network": Network.parse,
    "ar": Autoregression.parse,
    "best": Best.parse,
    "schedule": Schedule.parse,
}

__all__ = [
    "FORECASTERS",
    "Expectation",
    "Forecast",
    "Forecaster",
    "History",
    "LeastSquares",
    "Memory",
    "Schedule",
    "find_forecaster",
]


def find_forecaster(spec: str) -> Forecaster:
    """Build a forecaster from its name and, after a colon, its parameters.

    >>> find_forecaster("line")
    LeastSquares(step_seconds=60.0, points=3, kept=10)
    >>> find_forecaster("schedule:step:low=1:high=9").forecast({}, 0.0, steps=1).path()
    (1.0,)
    """
    name, _, rest = spec.strip().partition(":")
    if name not in FORECASTERS:
        raise UserError(f"unknown forecast {name!r}{nearest(name, FORECASTERS)}")
    return FORECASTERS[name](rest)
