"""Least-squares lines: the only forecast that the papers' reactive policies use."""

from collections.abc import Sequence
from dataclasses import dataclass

from rheostat.analyze.forecasts.expectation import Expectation
from rheostat.analyze.forecasts.forecast import Forecast, certain
from rheostat.analyze.forecasts.forecaster import Forecaster, History, Memory, keep
from rheostat.model.errors import UserError


@dataclass(frozen=True)
class Line(Expectation):
    """y = intercept + slope * x."""

    intercept: float
    slope: float

    def at(self, time: float) -> float:
        return self.intercept + self.slope * time


@dataclass(frozen=True)
class LeastSquares(Forecaster):
    """Draws a line through the last `kept` steps on into the future, once it has enough points.

    >>> LeastSquares().line([(0, 10), (60, 20), (120, 30)]).at(180)
    40.0
    """

    points: int = 3
    kept: int = 10

    @staticmethod
    def parse(text: str) -> "LeastSquares":
        """Parse nothing, or the minimum number of points."""
        if text and not (text.isdecimal() and int(text) >= 2):
            raise UserError(f"the forecast line:{text} makes no sense; write line or line:POINTS, at least 2")
        return LeastSquares(int(text), max(int(text), 10)) if text else LeastSquares()

    def line(self, history: History) -> Line | None:
        """The line through a whole history, or None if that is too short."""
        if len(history) < self.points:
            return None
        return fit([time for time, _ in history], [load for _, load in history])

    def observe(self, memory: Memory, at: float, rate: float, local_start: float = 0.0) -> Memory:
        return {"recent": keep(memory, at, rate, (self.kept - 0.5) * self.step_seconds)}

    def forecast(self, memory: Memory, now: float, steps: int, local_start: float = 0.0) -> Forecast | None:
        line = self.line(memory.get("recent", ()))
        if line is None:
            return None
        ends = [now + self.step_seconds * step for step in range(1, steps + 1)]
        return certain(now, self.step_seconds, [line.at(end) for end in ends])


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
