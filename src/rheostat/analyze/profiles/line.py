"""A profile as a straight line."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rheostat.analyze.profiles.plain import number
from rheostat.analyze.profiles.samples import Floats, Samples


@dataclass(frozen=True, slots=True)
class Line:
    """Least squares; neither the cost at rest nor that of a row can be negative.

    >>> Line.fit(Samples(np.array([1.0, 2.0, 3.0]), np.array([3.0, 5.0, 7.0]))).at(np.array([10.0])).round(6)
    array([21.])
    """

    rest: float
    slope: float
    name = "line"

    @classmethod
    def fit(cls, samples: Samples) -> "Line":
        """Fit it to the points."""
        x, y = samples.x, samples.y
        spread = float(((x - x.mean()) ** 2).sum())
        slope = float(((x - x.mean()) * (y - y.mean())).sum()) / spread if spread > 0 else 0.0
        rest = float(y.mean() - slope * x.mean())
        if slope <= 0:
            return cls(float(y.mean()), 0.0)
        if rest < 0:
            return cls(0.0, float((x * y).sum() / (x * x).sum()))
        return cls(rest, slope)

    def at(self, x: Floats) -> Floats:
        """The line at these places."""
        return np.asarray(self.rest + self.slope * x, dtype=np.float64)

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> "Line":
        """It again, from its state."""
        return cls(number(state["rest"]), number(state["slope"]))

    @property
    def state(self) -> dict[str, Any]:
        """It as plain JSON data."""
        return {"rest": self.rest, "slope": self.slope}
