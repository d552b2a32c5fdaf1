"""The basic shapes; each takes its parameters and returns rows/s as a function of seconds."""

import numpy as np

from rheostat.model.errors import UserError
from rheostat.workloads.curve import FloatArray, RateFunction


def constant(duration: float, rate: float) -> RateFunction:
    """One rate throughout."""
    return lambda t: np.full_like(t, rate)


def step(duration: float, low: float, high: float, start: float | None, end: float | None) -> RateFunction:
    """One jump up and one back, by default for the middle third (P2, section 5.2: a step load)."""
    begin = duration / 3 if start is None else start
    finish = max(2 * duration / 3, (begin + duration) / 2) if end is None else end
    if not begin < finish <= duration:
        raise UserError(
            f"step: start={begin:g}, end={finish:g}, duration={duration:g} must rise in this order"
        )
    return lambda t: np.where((t >= begin) & (t < finish), high, low)


def stair(duration: float, low: float, high: float, steps: float) -> RateFunction:
    """Up by equal steps and down again, every level held for the same time (P2, section 5.1)."""
    held = duration / (2 * steps + 1)

    def rate(t: FloatArray) -> FloatArray:
        level = np.minimum(np.floor(t / held + 1e-9), 2 * steps)
        return low + (high - low) * (steps - np.abs(level - steps)) / steps

    return rate


def square(duration: float, low: float, high: float, period: float) -> RateFunction:
    """Half a period low, half a period high (P2, section 5.1: the hardest curve for a reactive policy)."""
    return lambda t: np.where(np.mod(t, period) < period / 2, low, high)


def sine(duration: float, low: float, high: float, period: float) -> RateFunction:
    """A wave that starts at its lowest point, where a small configuration fits (P2, section 5.1)."""
    return lambda t: low + (high - low) * (1 - np.cos(2 * np.pi * t / period)) / 2


def ramp(duration: float, low: float, high: float) -> RateFunction:
    """A straight line up and a straight line down (P1, Fig. 2a)."""
    return lambda t: high - (high - low) * np.abs(2 * t / duration - 1)
