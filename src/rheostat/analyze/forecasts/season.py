"""The load of this hour on this weekday, as it was in the weeks before (P0, section 5.3)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import floor
from typing import Self

from rheostat.analyze.forecasts.forecast import Forecast, certain
from rheostat.analyze.forecasts.forecaster import Forecaster, Memory
from rheostat.analyze.forecasts.parameters import read

HOURS, DAYS, WORKING_DAYS = 24, 7, 5
Hour = Sequence[float]  # the mean of its rates, and how many they were


@dataclass(frozen=True)
class Season(Forecaster):
    """The mean of each hour of the week, joined by lines, times how today differs from it.

    P0 provides by the mean of each hour, apart for working days and week-ends. An hour of a weekday that was
    never seen is therefore expected to be as on the others of its kind; one that was never seen on any such
    day is not expected at all. How today differs (`level`) fades with each step ahead.

    `day` is shorter where a load is played faster than it was recorded.
    """

    day: float = 86_400.0
    weeks: float = 3.0  # how long an hour is remembered
    smoothing: float = 0.4  # the weight of the newest step in how today differs
    fading: float = 0.99  # what is left of that after a step

    @staticmethod
    def parse(text: str) -> "Season":
        """Parse `day=` in seconds, `weeks=`, `smoothing=` and `fading=`."""
        limits = {"day": (24.0, 1e6), "weeks": (0.1, 60.0), "smoothing": (0.0, 1.0), "fading": (0.0, 1.0)}
        return Season(**read("season", text, limits))

    def paced(self, step_seconds: float, day_seconds: float = 86_400.0) -> Self:
        return replace(self, step_seconds=step_seconds, day=day_seconds)

    def observe(self, memory: Memory, at: float, rate: float, local_start: float = 0.0) -> Memory:
        middle = at - self.step_seconds / 2 + local_start
        expected = self._expected(memory, middle)
        level = memory.get("level", 1.0)
        if expected:
            level += self.smoothing * (rate / expected - level)
        hours = [*memory.get("hours", [[0.0, 0.0]] * (HOURS * DAYS))]
        hour = floor(middle / self.day * HOURS) % len(hours)
        mean, count = hours[hour]
        count = min(count + 1, max(1.0, self.weeks * self.day / HOURS / self.step_seconds))
        hours[hour] = [mean + (rate - mean) / count, count]
        return {"hours": hours, "level": level}

    def forecast(self, memory: Memory, now: float, steps: int, local_start: float = 0.0) -> Forecast | None:
        path, level = [], memory.get("level", 1.0)
        for step in range(1, steps + 1):
            middle = now + (step - 0.5) * self.step_seconds + local_start
            expected = self._expected(memory, middle)
            if expected is None:
                return None
            path.append(expected * (1 + (level - 1) * self.fading**step))
        return certain(now, self.step_seconds, path)

    def _expected(self, memory: Memory, middle: float) -> float | None:
        """The line from the middle of one hour to the middle of the next, where both are known."""
        hours = memory.get("hours")
        if not hours:
            return None
        place = middle / self.day * HOURS - 0.5
        before = floor(place)
        first, second = _mean(hours, before), _mean(hours, before + 1)
        if first is None or second is None:
            return first if second is None else second
        return first + (second - first) * (place - before)


def _mean(hours: Sequence[Hour], number: int) -> float | None:
    """The mean of an hour of the week; else of that hour on the days of its kind."""
    mean, count = hours[number % len(hours)]
    if count:
        return mean
    day, hour = divmod(number % len(hours), HOURS)
    kind = range(WORKING_DAYS) if day < WORKING_DAYS else range(WORKING_DAYS, DAYS)
    alike = [hours[other * HOURS + hour] for other in kind if hours[other * HOURS + hour][1]]
    return sum(mean for mean, _ in alike) / len(alike) if alike else None
