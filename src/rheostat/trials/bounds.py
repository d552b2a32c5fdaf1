"""The bounds that a policy has to keep in a trial, and whether it keeps them."""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from rheostat.trials.contestants import ALLOCATION, PEAK
from rheostat.trials.measures import measure
from rheostat.trials.trial import Result, Trial

REPEATS = 3  # that a bound must be kept in
FEWER_THAN_PEAK, FEWER_THAN_ALLOCATION = 0.40, 0.25  # node-seconds
LAG_TO_CONTROL, LAG_TO_ALLOCATION = 2.0, 1.5  # p99
DEGRADED = 0.15
LAG_CURVES = ("stair", "sine")  # curves on which the lag has a bound; a square leaves no time to act


@dataclass(frozen=True)
class Check:
    """A bound, and the value reached: the median over the repeats."""

    policy: str
    what: str
    runs: Sequence[float]  # the value of each repeat
    bound: float
    form: str
    is_minimum: bool = False

    @property
    def value(self) -> float:
        """The median; NaN without any run."""
        return median(self.runs) if self.runs else math.nan

    @property
    def kept(self) -> bool:
        return self.value >= self.bound if self.is_minimum else self.value <= self.bound

    @property
    def verdict(self) -> str:
        """Whether it is kept; one or two runs prove little."""
        few = len(self.runs) < REPEATS
        return ("ok so far" if few else "ok") if self.kept else "RED"

    @property
    def cells(self) -> tuple[str, str, str, str, str]:
        """A row of a table."""
        word = "at least" if self.is_minimum else "at most"
        value = self.form.format(self.value) if math.isfinite(self.value) else "no run"
        return (
            self.policy,
            self.what,
            value,
            f"{word} {self.form.format(self.bound)}",
            self.verdict,
        )


def check_bounds(
    trial: Trial, name: str, results: Sequence[Result], contestants: Collection[str]
) -> list[Check]:
    """Check the bounds of a policy: ratios within a repeat, and their median."""
    runs = {(result.contestant, result.number): result for result in results}
    own = [result for result in results if result.contestant == name]

    def pairs(peer: str) -> list[tuple[Result, Result]]:
        return [(mine, runs[peer, mine.number]) for mine in own if (peer, mine.number) in runs]

    def ratios(peer: str, of: Callable[[Result], float]) -> list[float]:
        return [of(mine) / (of(other) or math.nan) for mine, other in pairs(peer)]

    def later_lags(peer: str) -> list[float]:
        from_then = [(mine, other, _caught_up(other, trial)) for mine, other in pairs(peer)]
        return [_p99(mine, then) / (_p99(other, then) or math.nan) for mine, other, then in from_then]

    def fewer_nodes(peer: str) -> list[float]:
        return [1 - ratio for ratio in ratios(peer, lambda result: sum(result.nodes))]

    def lag_to_control(result: Result) -> float:
        control = trial.trigger_seconds + trial.period_seconds
        return _p99(result) / (control + median(result.startups or [0.0]))

    checks = [
        Check(
            name,
            "fewer node-seconds than static-peak",
            fewer_nodes(PEAK),
            FEWER_THAN_PEAK,
            "{:.1%}",
            is_minimum=True,
        )
    ]
    if trial.curve.partition(":")[0] in LAG_CURVES:
        what = "p99 lag in trigger + control period + node start-up"
        checks.append(Check(name, what, [lag_to_control(result) for result in own], LAG_TO_CONTROL, "{:.2f}"))
    if ALLOCATION in contestants:
        checks += [
            Check(
                name,
                f"fewer node-seconds than {ALLOCATION}",
                fewer_nodes(ALLOCATION),
                FEWER_THAN_ALLOCATION,
                "{:.1%}",
                is_minimum=True,
            ),
            Check(name, f"p99 lag to {ALLOCATION}'s", ratios(ALLOCATION, _p99), LAG_TO_ALLOCATION, "{:.2f}"),
        ]
    if any(_caught_up(result, trial) for result in results if result.contestant == ALLOCATION):
        what = f"the same, from when {ALLOCATION} had caught up with its start"
        checks.append(Check(name, what, later_lags(ALLOCATION), LAG_TO_ALLOCATION, "{:.2f}"))
    degraded = [measure(trial, result, np.zeros_like).throughput_degradation for result in own]
    return [*checks, Check(name, "throughput degradation", degraded, DEGRADED, "{:.3f}")]


def _p99(result: Result, begin: int = 0) -> float:
    return float(np.percentile(result.lag[begin:], 99))


def _caught_up(result: Result, trial: Trial) -> int:
    """Return the second at which a run has caught up with its start; 0: it was never behind, or always is.

    A stream that is never behind lags by up to twice its trigger.
    """
    return next((at for at, lag in enumerate(result.lag) if lag <= 2 * trial.trigger_seconds), 0)
