"""Autoregression: a step is a weighted sum of those before it, which fits any short rhythm."""

from dataclasses import dataclass

import numpy as np

from rheostat.analyze.forecasts.evenly import evenly
from rheostat.analyze.forecasts.forecast import Forecast, certain
from rheostat.analyze.forecasts.forecaster import Forecaster, History, Memory, keep
from rheostat.analyze.forecasts.parameters import read


@dataclass(frozen=True)
class Autoregression(Forecaster):
    """An AR model whose weights are fitted anew to the kept steps, by least squares, every `refit` steps.

    A small ridge keeps weights finite where the load is a straight line or a clean wave. A forecast of many
    steps feeds the model its own expectations. Box, Jenkins: Time Series Analysis, 1970, chapters 3 and 5.
    """

    order: int = 20  # steps back that a step depends on
    kept: int = 480  # steps that the weights are fitted to
    refit: int = 15
    ridge: float = 1e-3  # of the variance

    @staticmethod
    def parse(text: str) -> "Autoregression":
        """Parse `order=`, `kept=` and `refit=`."""
        limits = {"order": (1, 120), "kept": (10, 10_000), "refit": (1, 1_000)}
        values = {key: int(value) for key, value in read("ar", text, limits).items()}
        return Autoregression(**values)

    def observe(self, memory: Memory, at: float, rate: float, local_start: float = 0.0) -> Memory:
        recent = keep(memory, at, rate, (self.kept - 0.5) * self.step_seconds)
        age = memory.get("age", self.refit) + 1
        if age < self.refit or len(recent) < 3 * self.order:
            return {**memory, "recent": recent, "age": age}
        return {"recent": recent, "age": 0, "weights": self._fitted(recent)}

    def forecast(self, memory: Memory, now: float, steps: int, local_start: float = 0.0) -> Forecast | None:
        weights = memory.get("weights")
        if weights is None:
            return None
        recent = evenly(memory["recent"][-2 * self.order :], self.step_seconds, self.order)
        if recent is None:
            return None
        constant, past, path = weights[0], np.array(weights[:0:-1]), recent.tolist()
        top = 2 * max(rate for _, rate in memory["recent"])  # an unstable model must not run away
        for _ in range(steps):
            path.append(min(top, max(0.0, constant + float(past @ path[-self.order :]))))
        return certain(now, self.step_seconds, path[self.order :])

    def _fitted(self, recent: History) -> list[float]:
        """The constant, then the weights of the steps before, the nearest first."""
        even = evenly(recent, self.step_seconds)
        assert even is not None
        windows = np.lib.stride_tricks.sliding_window_view(even, self.order + 1)
        mean = even.mean()
        past, now = windows[:, -2::-1] - mean, windows[:, -1] - mean
        ridge = self.ridge * max(float(even.var()), 1e-12) * len(now)
        weights = np.linalg.solve(past.T @ past + ridge * np.eye(self.order), past.T @ now)
        return [float(mean * (1 - weights.sum())), *weights.tolist()]
