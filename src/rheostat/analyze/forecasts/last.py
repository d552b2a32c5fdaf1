"""The load stays what it was: what every other method has to beat."""

from dataclasses import dataclass

from rheostat.analyze.forecasts.forecast import Forecast, certain
from rheostat.analyze.forecasts.forecaster import Forecaster, Memory
from rheostat.analyze.forecasts.parameters import none


@dataclass(frozen=True)
class Last(Forecaster):
    """Repeats the last value.

    >>> last = Last()
    >>> last.forecast(last.observe({}, 60.0, 500.0), 60.0, steps=3).path()
    (500.0, 500.0, 500.0)
    """

    @staticmethod
    def parse(text: str) -> "Last":
        none("last", text)
        return Last()

    def observe(self, memory: Memory, at: float, rate: float, local_start: float = 0.0) -> Memory:
        return {"last": rate}

    def forecast(self, memory: Memory, now: float, steps: int, local_start: float = 0.0) -> Forecast | None:
        return certain(now, self.step_seconds, [memory["last"]] * steps) if memory else None
