"""What a proactive policy expects: a calibrated forecast, until the load leaves its band (P0, P2)."""

from dataclasses import dataclass, field
from functools import cached_property
from math import ceil

from rheostat.analyze.forecasts import Forecast, Memory, find_forecaster
from rheostat.analyze.forecasts.band import Band
from rheostat.analyze.forecasts.calibrated import Calibrated
from rheostat.analyze.forecasts.forecaster import brief
from rheostat.analyze.forecasts.learning import warm_up
from rheostat.model.errors import UserError
from rheostat.workloads import parse_curve, sample

FOLLOWS_CLOCK = 23 / 24  # of a day: so long a history has the clock's hours, a shorter one the run's
MINUTE = 60.0  # P2's step, section 3.2
SOONEST = 51.0  # a timer may fire a little early
SAME = 1.5 * MINUTE  # a load that ends so soon after a forecast is that of its first minute

Step = tuple[float, float]  # the end of a step, and its rate


@dataclass(frozen=True)
class Past:
    """A load before the run, in minutes that end when the run begins."""

    steps: tuple[Step, ...] = ()
    local_start: float | None = None  # of the run, if the load follows the clock
    day_seconds: float = 86_400.0


@dataclass(frozen=True)
class Foresight:
    """A forecaster by name, the load before the run from which it learns, and how far it looks."""

    spec: str
    history: str = ""  # a load curve or a trace
    minutes: float = 5.0
    band: Band = field(default_factory=Band)

    def check(self) -> None:
        """Raise UserError for a mistake in what was asked for; a network is trained here."""
        _ = self._forecaster

    @cached_property
    def _past(self) -> Past:
        if not self.history:
            return Past()
        curve = parse_curve(self.history)
        rates = sample(curve, MINUTE).tolist()
        steps = tuple((MINUTE * (number + 1 - len(rates)), rate) for number, rate in enumerate(rates))
        clock = curve.duration_seconds >= FOLLOWS_CLOCK * curve.day_seconds
        begins_at = curve.begins_at * curve.day_seconds / 86_400
        return Past(steps, begins_at + MINUTE * len(rates) if clock else None, curve.day_seconds)

    @cached_property
    def _forecaster(self) -> Calibrated:
        if find_forecaster(self.spec).needs_training and not self._past.steps:
            raise UserError(f"the forecast {self.spec} must learn first: give history=CURVE, or its file")
        calibrated = Calibrated(find_forecaster(self.spec), max(1, ceil(self.minutes)))
        if not self._past.steps:
            return calibrated
        paced = calibrated.paced(MINUTE, self._past.day_seconds)
        return paced.trained(self._past.steps, self._past.local_start or 0.0)

    def observe(self, memory: Memory, start: float, end: float, load: float, local_start: float) -> Memory:
        """The next memory; windows shorter than a minute are put together first."""
        memory = memory or {"forecast": self._begin(local_start), "band": {}}
        first, mean = start, load
        if piece := memory.get("piece"):
            began, until, rate = piece
            if until == start:  # else what lies between was not measured
                first, mean = began, (rate * (until - began) + load * (end - start)) / (end - began)
        if end - first < SOONEST:
            return {**memory, "piece": [first, end, mean]}
        return self._minute(memory, end, mean, local_start)

    def expected(self, memory: Memory, now: float, local_start: float) -> Forecast | None:
        """The forecast from now on, or None while nothing is known or the load is outside the band."""
        if self.alert(memory):
            return None
        return self._forecaster.forecast(memory["forecast"], now, self._forecaster.steps, local_start)

    def alert(self, memory: Memory) -> str | None:
        """Why the forecast is dropped, if it is."""
        return self.band.alert(memory["band"])

    def _begin(self, local_start: float) -> Memory:
        """What the history leaves; a shorter one than a day has no hours but those of the run."""
        own = self._past.local_start
        return warm_up(self._forecaster, self._past.steps, local_start if own is None else own)

    def _minute(self, memory: Memory, end: float, rate: float, local_start: float) -> Memory:
        forecaster, band = self._forecaster, memory["band"]
        until = memory.get("until", -SAME)
        if end - until < SAME:
            before = forecaster.forecast(memory["forecast"], until, 1, local_start)
            band = self.band.observe(band, before, end, rate)
        observed = forecaster.observe(memory["forecast"], end, brief(rate), local_start)
        return {"forecast": observed, "band": band, "until": end}
