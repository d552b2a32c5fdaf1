"""A forecaster is trained on the earlier part of a load and judged on the later one, which it never saw."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rheostat.analyze.forecasts.calibrated import HIGH, Calibrated
from rheostat.analyze.forecasts.forecast import MEDIAN, Forecast
from rheostat.analyze.forecasts.forecaster import Forecaster
from rheostat.analyze.forecasts.learning import warm_up
from rheostat.model.errors import UserError
from rheostat.workloads.curve import FloatArray

LEAST_STEPS = 45  # in each part; the network cannot be trained on fewer


@dataclass(frozen=True, eq=False)
class Load:
    """A load at even steps, the first `training` of which may be learned from."""

    rates: FloatArray
    step_seconds: float
    training: int
    begins_at: float = 0.0  # local time, in seconds since midnight on Monday

    @property
    def training_history(self) -> list[tuple[float, float]]:
        """The part that trains: each rate with the time of its step's end."""
        return self._history(0, self.training)

    @property
    def judged_history(self) -> list[tuple[float, float]]:
        """The part that judges, in the same way."""
        return self._history(self.training, len(self.rates))

    def _history(self, first: int, last: int) -> list[tuple[float, float]]:
        ends = self.step_seconds * np.arange(first + 1, last + 1)
        return list(zip(ends.tolist(), self.rates[first:last].tolist(), strict=True))

    @property
    def judged(self) -> FloatArray:
        """The part that judges."""
        return self.rates[self.training :]


@dataclass(frozen=True, eq=False)
class Replay:
    """The forecasts that were made as the judged part of a load came, and what came."""

    method: str
    forecaster: Forecaster  # as trained
    rates: FloatArray
    forecasts: tuple[Forecast | None, ...]  # each made right after the rate of the same place

    def error(self, ahead: int) -> float | None:
        """The mean absolute error so many steps ahead, over the mean load."""
        expected, came = self._pairs(ahead, MEDIAN)
        mean = float(self.rates.mean())
        return float(np.abs(expected - came).mean()) / mean if len(came) and mean else None

    def coverage(self, ahead: int, level: float = HIGH) -> float | None:
        """The share of loads that were at most a stated quantile."""
        stated, came = self._pairs(ahead, level)
        return float((came <= stated).mean()) if len(came) else None

    def path(self, ahead: int, level: float) -> FloatArray:
        """What was stated about each judged step so many steps before, or NaN."""
        stated = [
            one.values[ahead - 1][one.levels.index(level)] if one and one.knows(level) else np.nan
            for one in self.forecasts[:-ahead]
        ]
        return np.array([np.nan] * ahead + stated)

    def _pairs(self, ahead: int, level: float) -> tuple[FloatArray, FloatArray]:
        if ahead >= len(self.rates):
            return np.array([]), np.array([])
        stated = self.path(ahead, level)
        known = np.isfinite(stated)
        return stated[known], self.rates[known]


def divide(rates: FloatArray, step_seconds: float, share: float, begins_at: float = 0.0) -> Load:
    """Give the first share of a load to the training; UserError if either part is too short."""
    training = round(len(rates) * share)
    if min(training, len(rates) - training) < LEAST_STEPS:
        raise UserError(
            f"{len(rates)} steps of {step_seconds:g} s, {training} of them to train: "
            f"at least {LEAST_STEPS} are needed to train and to judge; give a longer load or a shorter --step"
        )
    return Load(rates, step_seconds, training, begins_at)


def replay(
    method: str, forecaster: Forecaster, load: Load, ahead: int, progress: Callable[[float], None]
) -> Replay:
    """Train a forecaster, then let it forecast after each judged step."""
    history = load.training_history
    calibrated = Calibrated(forecaster, ahead, step_seconds=load.step_seconds)
    calibrated = calibrated.trained(history, load.begins_at)
    memory = warm_up(calibrated, history, load.begins_at)
    forecasts: list[Forecast | None] = []
    for at, rate in load.judged_history:
        memory = calibrated.observe(memory, at, rate, load.begins_at)
        forecasts.append(calibrated.forecast(memory, at, ahead, load.begins_at))
        if len(forecasts) % 100 == 0:
            progress(len(forecasts) / len(load.judged))
    return Replay(method, calibrated.base, load.judged, tuple(forecasts))
