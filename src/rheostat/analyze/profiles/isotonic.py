"""A profile that only has to rise: the best rising steps through the points."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression

from rheostat.analyze.profiles.line import Line
from rheostat.analyze.profiles.plain import number, numbers
from rheostat.analyze.profiles.samples import Floats, Samples

MOST_KNOTS = 50


@dataclass(frozen=True, slots=True)
class Isotonic:
    """Joined by straight lines; beyond the points it goes on as steeply as the line through all of them.

    >>> rising = Isotonic.fit(Samples(np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0])))
    >>> rising.at(np.array([1.5, 3.0]))
    array([1.75, 2.5 ])
    """

    x: tuple[float, ...]
    y: tuple[float, ...]
    slope: float  # beyond the last knot
    name = "isotonic"

    @classmethod
    def fit(cls, samples: Samples) -> "Isotonic":
        """Fit it to the points; close ones share a knot."""
        order = np.argsort(samples.x, kind="stable")
        x, y = samples.x[order], isotonic_regression(samples.y[order]).x
        parts = np.array_split(np.arange(len(x)), min(MOST_KNOTS, len(x)))
        knots = tuple((float(x[part].mean()), float(y[part].mean())) for part in parts)
        return cls(tuple(a for a, _ in knots), tuple(b for _, b in knots), Line.fit(samples).slope)

    def at(self, x: Floats) -> Floats:
        """The curve at these places."""
        inside = np.interp(x, self.x, self.y)
        return np.asarray(inside + self.slope * np.maximum(0.0, x - self.x[-1]), dtype=np.float64)

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> "Isotonic":
        """It again, from its state."""
        x, y = numbers(state["x"]), numbers(state["y"])
        if not x or len(x) != len(y) or list(x) != sorted(x):
            raise ValueError("knots")
        return cls(x, y, number(state["slope"]))

    @property
    def state(self) -> dict[str, Any]:
        """It as plain JSON data."""
        return {"x": list(self.x), "y": list(self.y), "slope": self.slope}
