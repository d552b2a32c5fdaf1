"""The paper's profile (P2, section 5): one input, three hidden neurons, one output, all tanh."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rheostat.analyze.perceptron import Perceptron, fresh, train
from rheostat.analyze.profiles.line import Line
from rheostat.analyze.profiles.plain import number, numbers
from rheostat.analyze.profiles.samples import Floats, Samples

HIDDEN = 3
EPOCHS = 400
STARTS = 3  # from other weights; the one that ends with the smallest error is taken
MARGIN = 0.8  # inputs and outputs are scaled to -0.8..0.8, where tanh is not flat yet


@dataclass(frozen=True, slots=True)
class Network:
    """Beyond the points, where a tanh would be flat, it goes on as steeply as the line through all of them.

    >>> x = np.linspace(0.0, 2.0, 40)
    >>> bool(abs(Network.fit(Samples(x, x * x)).at(np.array([1.0]))[0] - 1.0) < 0.05)
    True
    """

    learned: Perceptron
    low: tuple[float, float]  # of x and y
    high: tuple[float, float]
    slope: float
    name = "network"

    @classmethod
    def fit(cls, samples: Samples) -> "Network":
        """Train it on the points."""
        low = float(samples.x.min()), float(samples.y.min())
        high = float(samples.x.max()), float(samples.y.max())
        x = _scaled(samples.x, low[0], high[0])[:, None]
        y = _scaled(samples.y, low[1], high[1])[:, None]
        trained = [train(fresh(1, HIDDEN, 1, seed), x, y, 0.0, EPOCHS) for seed in range(STARTS)]
        best = min(trained, key=lambda network: network.error(x, y))
        return cls(best, low, high, Line.fit(samples).slope)

    def at(self, x: Floats) -> Floats:
        """What the network says at these places."""
        inside = np.clip(x, self.low[0], self.high[0])
        output = self.learned(_scaled(inside, self.low[0], self.high[0])[:, None])[:, 0]
        y = self.low[1] + (output / MARGIN + 1) / 2 * (self.high[1] - self.low[1])
        return np.asarray(y + self.slope * np.maximum(0.0, x - self.high[0]), dtype=np.float64)

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> "Network":
        """It again, from its state."""
        weights, low, high = (numbers(state[name]) for name in ("weights", "low", "high"))
        if (len(weights), len(low), len(high)) != (3 * HIDDEN + 1, 2, 2):
            raise ValueError("weights")
        inner, outer = np.array(weights[: 2 * HIDDEN]), np.array(weights[2 * HIDDEN :])
        learned = Perceptron(inner.reshape(2, HIDDEN), outer.reshape(HIDDEN + 1, 1))
        return cls(learned, (low[0], low[1]), (high[0], high[1]), number(state["slope"]))

    @property
    def state(self) -> dict[str, Any]:
        """It as plain JSON data."""
        weights = np.concatenate([self.learned.hidden.ravel(), self.learned.output.ravel()])
        return {
            "weights": weights.tolist(),
            "low": list(self.low),
            "high": list(self.high),
            "slope": self.slope,
        }


def _scaled(values: Floats, low: float, high: float) -> Floats:
    width = high - low
    return MARGIN * (2 * (values - low) / width - 1) if width > 0 else np.zeros_like(values)
