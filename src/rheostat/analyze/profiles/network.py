"""The paper's profile (P2, section 4.1): a network of one input, three hidden neurons, one output, all tanh.

It is trained with resilient backpropagation, as the paper's are: Riedmiller and Braun, 1993.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rheostat.analyze.profiles.line import Line
from rheostat.analyze.profiles.plain import number, numbers
from rheostat.analyze.profiles.samples import Floats, Samples

HIDDEN = 3
ROUNDS = 400
STARTS = 3  # from other weights; the one that ends with the smallest error is taken
MARGIN = 0.8  # inputs and outputs are scaled to -0.8..0.8, where tanh is not flat yet
GROW, SHRINK, FIRST_STEP, LARGEST_STEP, SMALLEST_STEP = 1.2, 0.5, 0.1, 50.0, 1e-6


@dataclass(frozen=True, slots=True)
class Network:
    """Beyond the points, where a tanh would be flat, it goes on as steeply as the line through all of them.

    >>> x = np.linspace(0.0, 2.0, 40)
    >>> bool(abs(Network.fit(Samples(x, x * x)).at(np.array([1.0]))[0] - 1.0) < 0.05)
    True
    """

    weights: tuple[float, ...]  # three of the input, three biases, three of the output, its bias
    low: tuple[float, float]  # of x and y
    high: tuple[float, float]
    slope: float
    name = "network"

    @classmethod
    def fit(cls, samples: Samples) -> "Network":
        """Train it on the points."""
        low = float(samples.x.min()), float(samples.y.min())
        high = float(samples.x.max()), float(samples.y.max())
        x, y = _scaled(samples.x, low[0], high[0]), _scaled(samples.y, low[1], high[1])
        trained = [_train(x, y, np.random.default_rng(seed)) for seed in range(STARTS)]
        weights = min(trained, key=lambda weights: _error(weights, x, y))
        return cls(tuple(weights.tolist()), low, high, Line.fit(samples).slope)

    def at(self, x: Floats) -> Floats:
        """What the network says at these places."""
        inside = np.clip(x, self.low[0], self.high[0])
        output, _ = _forward(np.array(self.weights), _scaled(inside, self.low[0], self.high[0]))
        y = self.low[1] + (output / MARGIN + 1) / 2 * (self.high[1] - self.low[1])
        return np.asarray(y + self.slope * np.maximum(0.0, x - self.high[0]), dtype=np.float64)

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> "Network":
        """It again, from its state."""
        weights, low, high = (numbers(state[name]) for name in ("weights", "low", "high"))
        if (len(weights), len(low), len(high)) != (3 * HIDDEN + 1, 2, 2):
            raise ValueError("weights")
        return cls(weights, (low[0], low[1]), (high[0], high[1]), number(state["slope"]))

    @property
    def state(self) -> dict[str, Any]:
        """It as plain JSON data."""
        return {
            "weights": list(self.weights),
            "low": list(self.low),
            "high": list(self.high),
            "slope": self.slope,
        }


def _scaled(values: Floats, low: float, high: float) -> Floats:
    width = high - low
    return MARGIN * (2 * (values - low) / width - 1) if width > 0 else np.zeros_like(values)


def _forward(weights: Floats, x: Floats) -> tuple[Floats, Floats]:
    """The output, and what the hidden neurons say."""
    hidden = np.tanh(np.outer(x, weights[:HIDDEN]) + weights[HIDDEN : 2 * HIDDEN])
    return np.tanh(hidden @ weights[2 * HIDDEN : 3 * HIDDEN] + weights[-1]), hidden


def _error(weights: Floats, x: Floats, y: Floats) -> float:
    return float(((_forward(weights, x)[0] - y) ** 2).mean())


def _gradient(weights: Floats, x: Floats, y: Floats) -> Floats:
    output, hidden = _forward(weights, x)
    at_output = (output - y) * (1 - output**2)
    at_hidden = np.outer(at_output, weights[2 * HIDDEN : 3 * HIDDEN]) * (1 - hidden**2)
    return np.concatenate((x @ at_hidden, at_hidden.sum(axis=0), at_output @ hidden, [at_output.sum()]))


def _train(x: Floats, y: Floats, random: np.random.Generator) -> Floats:
    """Step by the sign of each derivative; a step grows while the sign stays, and shrinks when it turns."""
    weights = random.normal(0.0, 0.5, 3 * HIDDEN + 1)
    steps, before = np.full(weights.size, FIRST_STEP), np.zeros(weights.size)
    for _ in range(ROUNDS):
        gradient = _gradient(weights, x, y)
        turned = gradient * before
        factor = np.where(turned > 0, GROW, np.where(turned < 0, SHRINK, 1.0))
        steps = np.clip(steps * factor, SMALLEST_STEP, LARGEST_STEP)
        gradient = np.where(turned < 0, 0.0, gradient)
        weights = weights - np.sign(gradient) * steps
        before = gradient
    return weights
