"""When a forecast is dropped: more loads lie outside its band than its levels allow (P0, section 5.3)."""

from dataclasses import dataclass
from math import comb
from typing import Any

from rheostat.analyze.forecasts.calibrated import HIGH, LOW
from rheostat.analyze.forecasts.forecast import Forecast
from rheostat.analyze.forecasts.forecaster import Memory

ABOVE, BELOW, INSIDE = 1, -1, 0


@dataclass(frozen=True, slots=True)
class Band:
    """Remembers which of the last loads lay outside the band of the forecast for them.

    P0 falls back to reacting, and alerts, when the load leaves what was expected. One load outside an 80 %
    band means nothing; so many that chance would bring them in one of `1 / significance` cases does.

    >>> band = Band()
    >>> memory = {"outside": [0] * 8 + [1] * 4}
    >>> band.alert(memory) is None
    True
    >>> band.alert({"outside": [0] * 6 + [1] * 6})
    '6 of the last 12 loads were above the forecast, 1.2 may be: the forecast is dropped'
    """

    last: int = 12
    significance: float = 0.001

    def observe(self, memory: Memory, forecast: Forecast | None, at: float, rate: float) -> dict[str, Any]:
        """The next memory, with a load and the forecast that was made for it one step before."""
        outside = list(memory.get("outside", ()))
        if forecast is None or not forecast.knows(HIGH):
            return {"outside": outside}
        side = INSIDE
        if rate > forecast.at(at, HIGH):
            side = ABOVE
        elif rate < forecast.at(at, LOW):
            side = BELOW
        return {"outside": [*outside, side][-self.last :]}

    def alert(self, memory: Memory) -> str | None:
        """Why the forecast is to be dropped, or None if it is not."""
        outside = list(memory.get("outside", ()))
        for side, word, chance in ((ABOVE, "above", 1 - HIGH), (BELOW, "below", LOW)):
            misses, count = outside.count(side), len(outside)
            if misses and _at_least(misses, count, chance) < self.significance:
                were = f"{misses} of the last {count} loads were {word} the forecast"
                return f"{were}, {count * chance:.2g} may be: the forecast is dropped"
        return None


def _at_least(misses: int, count: int, chance: float) -> float:
    """The probability of so many misses or more: the tail of a binomial distribution.

    >>> round(_at_least(2, 3, 0.5), 9)
    0.5
    """
    return sum(comb(count, k) * chance**k * (1 - chance) ** (count - k) for k in range(misses, count + 1))
