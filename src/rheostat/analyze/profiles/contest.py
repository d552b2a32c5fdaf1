"""Which curve describes points best: they are compared on points that they were not fitted to."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from rheostat.analyze.profiles.isotonic import Isotonic
from rheostat.analyze.profiles.line import Line
from rheostat.analyze.profiles.network import Network
from rheostat.analyze.profiles.samples import Floats, Samples

FOLDS = 10  # P2, section 5
LEAST = 2 * FOLDS  # points; fewer are not enough to compare curves


class Curve(Protocol):
    """What was fitted to points."""

    name: str

    def at(self, x: Floats) -> Floats:
        """Its value at these places."""

    @property
    def state(self) -> dict[str, Any]:
        """It as plain JSON data."""


CURVES: Mapping[str, type[Line | Isotonic | Network]] = {
    kind.name: kind for kind in (Line, Isotonic, Network)
}  # simple ones first: they win ties


@dataclass(frozen=True, slots=True)
class Contest:
    """The curve that won, fitted to all points, and the error of each in the cross-validation."""

    curve: Curve
    errors: Mapping[str, float]
    samples: int


def compete(samples: Samples) -> Contest | None:
    """Let the curves compete in ten-fold cross-validation; None: there are too few points."""
    if len(samples) < LEAST:
        return None
    errors = {name: _cross_validated(name, samples) for name in CURVES}
    winner = min(errors, key=lambda name: errors[name])
    return Contest(CURVES[winner].fit(samples), errors, len(samples))


def mean_error(curve: Curve, samples: Samples) -> float:
    """The mean percentage error (P2, section 5), as a fraction: |estimated - measured| / measured.

    >>> mean_error(Line(0.0, 1.1), Samples(np.array([1.0, 2.0]), np.array([1.0, 2.0])))
    0.1000000...
    """
    return float(np.mean(np.abs(curve.at(samples.x) - samples.y) / samples.y))


def _cross_validated(name: str, samples: Samples) -> float:
    """The mean over the folds; a fold is every tenth point, so that each has points of all loads."""
    fold = np.arange(len(samples)) % FOLDS
    errors = []
    for number in range(FOLDS):
        curve = CURVES[name].fit(samples.take(fold != number))
        errors.append(mean_error(curve, samples.take(fold == number)))
    return float(np.mean(errors))
