"""A load like a social network's: a daily rhythm, bursts that trigger more bursts, and one flood.

P2 (section 5.1) replays Italian tweets of an election spring, 60 times faster. We do not have
that trace, so this load is synthetic: a Hawkes process of bursts (each event triggers others) under a
shot-noise kernel with a sharp rise and a slow decay, heights heavy-tailed, one election night.
"""

import numpy as np

from rheostat.workloads.curve import FloatArray, RateFunction
from rheostat.workloads.papers import DAY, HOUR, by_hour, hourly

GRID_SECONDS = 30.0
BRANCHING = 0.55  # echoes per burst; below 1, or the cascade never ends
ECHO_SECONDS = 1200.0
RISE_SECONDS, DECAY_SECONDS = 90.0, 1500.0
FLOOD_RISE_SECONDS, FLOOD_DECAY_SECONDS = 900.0, 5400.0
TAIL = 1.6  # Pareto exponent of the heights: finite mean, infinite variance
TALLEST = 25.0  # in units of the smallest burst
RHYTHM_SHARE, BURST_SHARE = 0.30, 0.022  # of the flood's height

RHYTHM = by_hour("42 26 13 5 0 3 10 24 36 42 45 48 58 62 56 50 50 55 64 76 90 100 92 68")


def bursty(duration: float, low: float, high: float, bursts: float, seed: float) -> RateFunction:
    """Draw such a load: `bursts` a day, not counting echoes; low and high are its exact extremes."""
    draw = np.random.default_rng(int(seed))
    grid: FloatArray = np.arange(0.0, duration + GRID_SECONDS, GRID_SECONDS)
    moments = _cascade(draw, _immigrants(draw, duration, bursts))
    heights = _heights(draw, moments.size)
    impulses = np.histogram(moments, bins=np.append(grid, grid[-1] + GRID_SECONDS), weights=heights)[0]
    shape = RHYTHM_SHARE * hourly(RHYTHM, grid)
    shape += BURST_SHARE * _respond(impulses, RISE_SECONDS, DECAY_SECONDS)
    flood = np.zeros_like(grid)
    flood[int(election_night(duration) / GRID_SECONDS)] = 1.0
    shape += _respond(flood, FLOOD_RISE_SECONDS, FLOOD_DECAY_SECONDS)
    spread = float(np.ptp(shape)) or 1.0
    rates = low + (high - low) * (shape - shape.min()) / spread
    return lambda t: np.interp(t, grid, rates)


def election_night(duration: float) -> float:
    """The time when the flood begins: as the polls close, at 21:00 on the last full evening.

    >>> election_night(DAY) / HOUR, election_night(2.5 * DAY) / HOUR
    (21.0, 45.0)
    """
    evenings = np.floor((duration - 24 * HOUR) / DAY)
    return float(evenings * DAY + 21 * HOUR) if evenings >= 0 else 0.75 * duration


def _immigrants(draw: np.random.Generator, duration: float, per_day: float) -> FloatArray:
    """Bursts that no other burst triggered: a Poisson process that follows the daily rhythm."""
    moments = draw.uniform(0.0, duration, draw.poisson(per_day / RHYTHM.mean() * duration / DAY))
    kept: FloatArray = moments[draw.uniform(size=moments.size) < hourly(RHYTHM, moments)]
    return kept


def _cascade(draw: np.random.Generator, parents: FloatArray) -> FloatArray:
    """Every burst triggers echoes, which trigger more: a Hawkes process, built generation by generation."""
    generations = [parents]
    while parents.size:
        parents = np.repeat(parents, draw.poisson(BRANCHING, parents.size))
        parents = parents + draw.exponential(ECHO_SECONDS, parents.size)
        generations.append(parents)
    return np.concatenate(generations)


def _heights(draw: np.random.Generator, count: int) -> FloatArray:
    """Heavy-tailed but capped: no everyday burst should exceed the election night."""
    return np.minimum(1 + draw.pareto(TAIL, count), TALLEST)


def _respond(impulses: FloatArray, rise: float, decay: float) -> FloatArray:
    """Turn impulses into load: each rises sharply, decays slowly and peaks at its own height."""
    ages: FloatArray = np.arange(0.0, 8 * decay, GRID_SECONDS)
    kernel = np.exp(-ages / decay) - np.exp(-ages / rise)
    return np.convolve(impulses, kernel / kernel.max())[: impulses.size]
