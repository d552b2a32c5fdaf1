"""Least-squares lines: the only forecast that the papers' reactive policies use."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """y = intercept + slope * x."""

    intercept: float
    slope: float

    def at(self, x: float) -> float:
        """The line's value."""
        return self.intercept + self.slope * x


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
