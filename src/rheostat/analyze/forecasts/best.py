"""For every step ahead, the method that was best there lately: no load keeps one character for ever."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from rheostat.analyze.forecasts.autoregression import Autoregression
from rheostat.analyze.forecasts.forecast import Forecast, certain
from rheostat.analyze.forecasts.forecaster import Forecaster, History, Memory, brief
from rheostat.analyze.forecasts.last import Last
from rheostat.analyze.forecasts.parameters import read
from rheostat.analyze.forecasts.season import Season
from rheostat.analyze.forecasts.trend import Trend
from rheostat.workloads.curve import FloatArray

MEMBERS: Mapping[str, Forecaster] = {
    "last": Last(),
    "trend": Trend(),
    "season": Season(),
    "ar": Autoregression(),
}


@dataclass(frozen=True)
class Best(Forecaster):
    """Several methods, of which the one with the smallest recent absolute error speaks, per step ahead.

    The errors are discounted sums, so that an old success fades (Herbster, Warmuth: Tracking the best
    expert. Machine Learning 32, 1998). A method that has no forecast yet is passed over.
    """

    members: Mapping[str, Forecaster] = field(default_factory=lambda: MEMBERS)
    steps: int = 15
    fading: float = 0.98  # what is left of an error after a step

    @staticmethod
    def parse(text: str) -> "Best":
        """Parse `fading=`."""
        return Best(**read("best", text, {"fading": (0.0, 1.0)}))  # type: ignore[arg-type]

    def paced(self, step_seconds: float, day_seconds: float = 86_400.0) -> Self:
        members = {name: each.paced(step_seconds, day_seconds) for name, each in self.members.items()}
        return replace(self, step_seconds=step_seconds, members=members)

    def trained(self, history: History, local_start: float = 0.0) -> Self:
        members = {name: each.trained(history, local_start) for name, each in self.members.items()}
        return replace(self, members=members)

    def observe(self, memory: Memory, at: float, rate: float, local_start: float = 0.0) -> Memory:
        sums, counts = self._errors(memory, at, rate)
        known = memory.get("members", {})
        members = {
            name: each.observe(known.get(name, {}), at, rate, local_start)
            for name, each in self.members.items()
        }
        memory = {**memory, "members": members, "errors": _brief(sums), "counts": _brief(counts)}
        paths = [list(map(brief, path)) for path in self._paths(memory, at, self.steps, local_start)]
        open_ = [one for one in memory.get("issued", ()) if self._ahead(one, at) < self.steps]
        return {**memory, "issued": [*open_, {"at": at, "paths": paths}]}

    def _errors(self, memory: Memory, at: float, rate: float) -> tuple[FloatArray, FloatArray]:
        """The discounted sums of each method's absolute errors, by steps ahead, and of how many they are."""
        nothing = np.zeros((len(self.members), self.steps))
        sums = self.fading * np.array(memory.get("errors", nothing))
        counts = self.fading * np.array(memory.get("counts", nothing))
        for issued in memory.get("issued", ()):
            step = self._ahead(issued, at) - 1
            for number, path in enumerate(issued["paths"]):
                if path and 0 <= step < self.steps:
                    sums[number, step] += abs(rate - path[step])
                    counts[number, step] += 1
        return sums, counts

    def _ahead(self, issued: Mapping[str, Any], at: float) -> int:
        return round((at - float(issued["at"])) / self.step_seconds)

    def forecast(self, memory: Memory, now: float, steps: int, local_start: float = 0.0) -> Forecast | None:
        if not memory:
            return None
        paths = np.array([path or [np.nan] * steps for path in self._paths(memory, now, steps, local_start)])
        if not np.isfinite(paths).any():
            return None
        counts = np.array(memory["counts"])
        mean = np.where(counts > 0, np.array(memory["errors"]) / np.maximum(counts, 1e-9), np.inf)
        mean = mean[:, np.minimum(np.arange(steps), self.steps - 1)]
        best = np.argmin(np.where(np.isfinite(paths), np.minimum(mean, 1e300), np.inf), axis=0)
        return certain(now, self.step_seconds, paths[best, np.arange(steps)].tolist())

    def _paths(self, memory: Memory, now: float, steps: int, local_start: float) -> list[list[float]]:
        made = [
            each.forecast(memory["members"][name], now, steps, local_start)
            for name, each in self.members.items()
        ]
        return [list(one.path()) if one else [] for one in made]


def _brief(table: FloatArray) -> list[list[float]]:
    return [[brief(value) for value in row] for row in table.tolist()]
