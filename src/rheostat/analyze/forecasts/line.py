"""Least-squares lines: the only forecast that the papers' reactive policies use."""

from collections.abc import Sequence
from dataclasses import dataclass

from rheostat.analyze.forecasts.forecaster import Forecast, History
from rheostat.model.errors import UserError


@dataclass(frozen=True)
class Line(Forecast):
    """y = intercept + slope * x."""

    intercept: float
    slope: float

    def at(self, time: float) -> float:
        return self.intercept + self.slope * time


@dataclass(frozen=True, slots=True)
class LeastSquares:
    """Fits a line through the whole history, once that has enough points.

    >>> LeastSquares().forecast([(0, 10), (60, 20), (120, 30)]).at(180)
    40.0
    """

    points: int = 3

    @staticmethod
    def parse(text: str) -> "LeastSquares":
        """Parse nothing, or the minimum number of points."""
        if text and not (text.isdecimal() and int(text) >= 2):
            raise UserError(f"the forecast line:{text} makes no sense; write line or line:POINTS, at least 2")
        return LeastSquares(int(text)) if text else LeastSquares()

    def forecast(self, history: History, local_start: float = 0.0) -> Line | None:
        if len(history) < self.points:
            return None
        return fit([time for time, _ in history], [load for _, load in history])


def fit(xs: Sequence[float], ys: Sequence[float]) -> Line:
    """Fit a line; with fewer than two distinct points it is flat.

    >>> fit([0, 1, 2], [10, 12, 14])
    Line(intercept=10.0, slope=2.0)
    """
    count = len(xs)
    if count == 0:
        return Line(0.0, 0.0)
    mean_x, mean_y = sum(xs) / count, sum(ys) / count
    spread = sum((x - mean_x) ** 2 for x in xs)
    if spread == 0:
        return Line(mean_y, 0.0)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / spread
    return Line(mean_y - slope * mean_x, slope)
