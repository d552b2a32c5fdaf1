"""A damped trend: the regression of P3 would draw a jump on for ever, this loses faith with every step."""

from dataclasses import dataclass
from itertools import accumulate

from rheostat.analyze.forecasts.forecast import Forecast, certain
from rheostat.analyze.forecasts.forecaster import Forecaster, Memory
from rheostat.analyze.forecasts.parameters import read


@dataclass(frozen=True)
class Trend(Forecaster):
    """A smoothed level and a smoothed slope, of which each step ahead keeps only a part.

    Like P3's line (section 4.1) it expects the arrivals to go on as they did. Gardner, McKenzie: Forecasting
    trends in time series. Management Science 31(10), 1985. Its weights are fixed; docs/forecasts.md says what
    fitting them with a library brought.

    >>> trend = Trend(level=1.0, slope=1.0, damping=0.5)
    >>> memory = trend.observe(trend.observe({}, 60.0, 100.0), 120.0, 200.0)
    >>> trend.forecast(memory, 120.0, steps=3).path()
    (250.0, 275.0, 287.5)
    """

    level: float = 0.7  # the weight of the newest step in the level
    slope: float = 0.1  # ... and in the slope
    damping: float = 0.8

    @staticmethod
    def parse(text: str) -> "Trend":
        """Parse `level=`, `slope=` and `damping=`."""
        limits = {"level": (0.01, 1.0), "slope": (0.0, 1.0), "damping": (0.0, 1.0)}
        return Trend(**read("trend", text, limits))

    def observe(self, memory: Memory, at: float, rate: float, local_start: float = 0.0) -> Memory:
        if not memory:
            return {"level": rate, "slope": 0.0}
        slope = self.damping * memory["slope"]
        missed = rate - memory["level"] - slope
        return {
            "level": memory["level"] + slope + self.level * missed,
            "slope": slope + self.slope * missed,
        }

    def forecast(self, memory: Memory, now: float, steps: int, local_start: float = 0.0) -> Forecast | None:
        if not memory:
            return None
        shares = accumulate(self.damping**step for step in range(1, steps + 1))
        return certain(
            now, self.step_seconds, [memory["level"] + memory["slope"] * share for share in shares]
        )
