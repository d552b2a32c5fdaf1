"""Noise on a load: the number of rows in each step scatters around the expected number."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

NoiseKind = Literal["none", "poisson", "negbin"]
KINDS: tuple[NoiseKind, ...] = ("none", "poisson", "negbin")


@dataclass(frozen=True, slots=True)
class Noise:
    """Poisson counts (independent senders) or negative-binomial ones (senders that act together).

    The negative binomial's variance is mean + dispersion · mean², so the relative scatter of a
    large load stays near sqrt(dispersion), while that of Poisson counts vanishes.
    """

    kind: NoiseKind = "none"
    dispersion: float = 0.02
    seed: int = 0

    def around(self, rate: NDArray[np.float64], step_seconds: float, seed: int = 0) -> NDArray[np.float64]:
        """Draw the rows/s of each step around its expected rate."""
        if self.kind == "none":
            return rate
        draw = np.random.default_rng([self.seed, seed])
        rows = rate * step_seconds
        if self.kind == "negbin":  # a Poisson whose mean is itself gamma-distributed
            rows = rows * draw.gamma(1 / self.dispersion, self.dispersion, size=rows.shape)
        return draw.poisson(rows).astype(np.float64) / step_seconds
