"""Calibration: what is called the 90 % quantile holds 90 % of the time (adaptive conformal prediction)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from rheostat.analyze.forecasts.forecast import MEDIAN, Forecast
from rheostat.analyze.forecasts.forecaster import Forecaster, History, Memory, brief
from rheostat.workloads.curve import FloatArray

LOW, HIGH = 0.1, 0.9
LEVELS = (LOW, MEDIAN, HIGH)
OUTERMOST = 0.005  # an adapted level keeps this distance from 0 and 1


@dataclass(frozen=True)
class Calibrated(Forecaster):
    """Any forecaster, with the quantiles of its own recent errors added to what it expects.

    Per step ahead it keeps the last `window` errors. Their quantiles are those of conformal prediction: of n
    errors the one of rank ceil((n + 1) level). While n is too small for that rank to exist there is no band,
    and the forecast states its expectation alone. Because a load drifts, the level that is asked for moves by
    `gain` after each hit and miss, so that in the long run the stated level holds whatever the load does.

    Gibbs, Candès: Adaptive conformal inference under distribution shift. NeurIPS 2021.
    """

    base: Forecaster
    steps: int = 15
    window: int = 120
    gain: float = 0.005

    @property
    def needs_training(self) -> bool:
        return self.base.needs_training

    def paced(self, step_seconds: float, day_seconds: float = 86_400.0) -> Self:
        base = self.base.paced(step_seconds, day_seconds)
        return replace(self, step_seconds=step_seconds, base=base)

    def trained(self, history: History, local_start: float = 0.0) -> Self:
        return replace(self, base=self.base.trained(history, local_start))

    def observe(self, memory: Memory, at: float, rate: float, local_start: float = 0.0) -> Memory:
        errors: list[float | None] = [None] * self.steps  # by how many steps ahead it was forecast
        asked = np.array(memory.get("asked", [LEVELS] * self.steps))
        open_ = []
        for issued in memory.get("issued", ()):
            step = round((at - issued["at"]) / self.step_seconds) - 1
            if step < self.steps - 1:
                open_.append(issued)
            if 0 <= step < self.steps:
                errors[step] = brief(rate - issued["path"][step])
                if issued["rows"]:
                    asked[step] += self.gain * (LEVELS - (rate <= np.array(issued["rows"][step])))
        seen = [*memory.get("errors", ())[1 - self.window :], errors]
        asked = np.clip(asked, OUTERMOST, 1 - OUTERMOST).round(6).tolist()
        base = self.base.observe(memory.get("base", {}), at, rate, local_start)
        memory = {"base": base, "errors": seen, "asked": asked}
        return {**memory, "issued": [*open_, *self._issued(memory, at, local_start)]}

    def forecast(self, memory: Memory, now: float, steps: int, local_start: float = 0.0) -> Forecast | None:
        """The forecast; a step beyond the calibrated ones has the errors of the last of those."""
        newest = memory["issued"][-1] if memory.get("issued") else None
        if newest is None or newest["at"] != now or steps > self.steps or not newest["rows"]:
            expected = self.base.forecast(memory.get("base", {}), now, steps, local_start)
            return self._banded(memory, expected) if expected else None
        return Forecast(now, self.step_seconds, LEVELS, tuple(map(tuple, newest["rows"][:steps])))

    def _issued(self, memory: Memory, at: float, local_start: float) -> list[Mapping[str, Any]]:
        """What is remembered of a new forecast, until the loads that it is about have come."""
        expected = self.base.forecast(memory["base"], at, self.steps, local_start)
        if expected is None:
            return []
        forecast = self._banded(memory, expected)
        rows = [list(row) for row in forecast.values] if forecast.knows(HIGH) else []
        return [{"at": at, "path": list(map(brief, expected.path())), "rows": rows}]

    def _banded(self, memory: Memory, expected: Forecast) -> Forecast:
        """What the method expects, with the band of its errors if they suffice for every step."""
        if not memory.get("errors"):
            return expected
        columns = np.minimum(np.arange(expected.steps), self.steps - 1)
        errors = np.sort(np.array(memory["errors"], dtype=np.float64)[:, columns], axis=0)  # missing last
        counts = np.count_nonzero(np.isfinite(errors), axis=0)[:, None]
        if np.any(np.ceil((counts + 1) * HIGH) > counts):
            return expected
        ranks = np.ceil((counts + 1) * np.array(memory["asked"])[columns])
        places = np.clip(ranks, 1, counts).astype(np.int64) - 1
        rows = np.array(expected.path())[:, None] + np.take_along_axis(errors, places.T, axis=0).T
        rows = np.maximum(rows, 0.0)
        return Forecast(expected.issued_at, self.step_seconds, LEVELS, _rising(rows))


def _rising(rows: FloatArray) -> tuple[tuple[float, ...], ...]:
    """Rows of quantiles in which none is below a lower one, in few digits: the journal stores them."""
    digits = 6 - int(np.ceil(np.log10(max(float(rows.max()), 1e-9))))
    return tuple(map(tuple, np.maximum.accumulate(rows, axis=1).round(digits).tolist()))
