"""A load curve as a value, and its samples."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rheostat.model.errors import UserError
from rheostat.workloads.noise import Noise

FloatArray = NDArray[np.float64]
RateFunction = Callable[[FloatArray], FloatArray]

MAX_STEPS = 40_000_000  # a year of seconds; more would not fit in memory beside a simulation
MAX_STEP_SECONDS = 86_400.0
_CHUNK = 1_000_000


@dataclass(frozen=True, slots=True)
class Curve:
    """The expected load over time; its noise, if any, is drawn only by `sample`."""

    name: str
    duration_seconds: float
    rate: RateFunction
    noise: Noise = field(default_factory=Noise)
    begins_at: float = 0.0  # wall-clock time, in seconds since midnight on Monday, if known
    day_seconds: float = 86_400.0  # how long a day takes: less where it is played faster
    resolution_seconds: float = 0.0  # of a trace: the usual time between its points

    def at(self, seconds: float) -> float:
        """The expected rows/s at a point in time."""
        return float(self.rate(np.asarray([seconds], dtype=np.float64))[0])

    def peak(self) -> float:
        """The highest expected rows/s, evaluated once per second."""
        seconds = math.floor(self.duration_seconds) + 1
        starts = range(0, seconds, _CHUNK)
        return max(
            float(self.rate(np.arange(start, min(start + _CHUNK, seconds), dtype=np.float64)).max())
            for start in starts
        )


def within(
    duration: float, rate: RateFunction, scale: float = 1.0, compress: float = 1.0, lead: float = 0.0
) -> RateFunction:
    """Define a shape at any time: clamped to its duration, never negative, scaled, compressed, delayed."""

    def clamped(seconds: FloatArray) -> FloatArray:
        own = np.clip((np.asarray(seconds, dtype=np.float64) - lead) * compress, 0.0, duration)
        return np.maximum(rate(own), 0.0) * scale

    return clamped


def sample(curve: Curve, step_seconds: float = 1.0, seed: int = 0) -> FloatArray:
    """The rows/s of every step of the duration, with noise; the same seed gives the same load.

    >>> from rheostat.workloads import parse_curve
    >>> sample(parse_curve("ramp:low=0:high=10:duration=4"))
    array([ 0.,  5., 10.,  5.])
    """
    if not 0 < step_seconds <= MAX_STEP_SECONDS:
        raise UserError(f"a step of {step_seconds:g} s cannot be sampled; give more than 0 and at most a day")
    if seed < 0:
        raise UserError(f"seed {seed} is negative; give 0 or more")
    steps = max(1, math.ceil(curve.duration_seconds / step_seconds - 1e-9))
    if steps > MAX_STEPS:
        raise UserError(f"{steps:,} steps are too many; give a step longer than {step_seconds:g} s")
    times: FloatArray = np.arange(steps, dtype=np.float64) * step_seconds
    return curve.noise.around(curve.rate(times), step_seconds, seed)
