"""Our formulas for the loads that the papers describe only in words or figures."""

import numpy as np

from rheostat.workloads.curve import FloatArray, RateFunction

HOUR, DAY = 3600.0, 86_400.0


def by_hour(percent: str) -> FloatArray:
    """Read a day's 24 hourly values, each a share of the way from the night's low to the peak."""
    return np.array([int(value) / 100 for value in percent.split()])


# We have P0's text, not its Fig. 8: these values are ours, based on the text's description.
WORKING_DAY = by_hour("6 3 1 0 1 4 12 30 62 88 100 97 74 72 92 98 94 82 60 44 36 28 19 11")
WEEKEND_DAY = by_hour("7 4 2 0 0 1 3 7 13 20 26 29 28 27 28 30 32 34 35 34 31 25 17 10")
WEEK: FloatArray = np.concatenate([np.tile(WORKING_DAY, 5), np.tile(WEEKEND_DAY, 2)])


def hourly(shape: FloatArray, t: FloatArray) -> FloatArray:
    """Interpolate hourly values smoothly and periodically without overshoot, so that low and high are exact.

    A cubic between the hours; its slope at an hour is the harmonic mean of the slopes around it, and
    zero at a turning point (Fritsch and Butland's rule), which is what forbids overshoot.
    """
    hours = t / HOUR
    index = np.floor(hours).astype(np.int64)
    x, left, right = hours - index, index % shape.size, (index + 1) % shape.size
    after = np.roll(shape, -1) - shape
    product, total = np.roll(after, 1) * after, np.roll(after, 1) + after
    slope = 2 * np.maximum(product, 0.0) / np.where(product > 0, total, 1.0)
    rise = x * x * (3 - 2 * x)
    bend = x * (1 - x) * ((1 - x) * slope[left] - x * slope[right])
    values: FloatArray = shape[left] + (shape[right] - shape[left]) * rise + bend
    return values


def day(duration: float, low: float, high: float, start: float) -> RateFunction:
    """A working day from midnight: morning rise, lunch dip, evening fall (P0, Fig. 8)."""
    return lambda t: low + (high - low) * hourly(WORKING_DAY, t + start)


def week(duration: float, low: float, high: float, start: float) -> RateFunction:
    """Five equal working days and a quiet week-end, from Monday midnight (P0, Fig. 8)."""
    return lambda t: low + (high - low) * hourly(WEEK, t + start)


def hourly_means(duration: float, low: float, high: float) -> RateFunction:
    """The working day as P0 replays it: the mean of each hour, held (section 5.3: for five minutes)."""
    return lambda t: low + (high - low) * WORKING_DAY[np.floor(24 * t / duration).astype(np.int64) % 24]


def exponential(
    *, duration: float, low: float, high: float, plateaus: float, irregular: float, seed: float
) -> RateFunction:
    """Low, an exponential rise to a high plateau, a fall by plateaus, low again (P3, section 5.1).

    P3 made its flow irregular to look real: here by random deviations of size `irregular` from the shape.
    """
    quiet, risen, fall, fallen = 0.2, 0.4, 0.6, 0.9
    knots = np.linspace(0.0, 1.0, 241)
    wander = np.clip(np.random.default_rng(int(seed)).standard_normal(knots.size), -2.0, 2.0)

    def rate(t: FloatArray) -> FloatArray:
        done = t / duration
        rise = np.clip((done - quiet) / (risen - quiet), 0.0, 1.0)
        up = np.expm1(4.0 * rise) / np.expm1(4.0)
        landing = np.clip(np.floor((done - fall) / (fallen - fall) * plateaus) + 1, 0.0, plateaus + 1)
        share = np.where(done < fall, up, 1 - landing / (plateaus + 1))
        shape: FloatArray = low + (high - low) * share
        return shape * (1 + irregular * np.interp(done, knots, wander))

    return rate
