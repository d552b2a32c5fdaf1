"""Judges forecasters on a load: their error, their band, and the simulated cost of following them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rheostat.analyze.forecasts import Forecaster, find_forecaster
from rheostat.analyze.forecasts.replay import Load, Replay, divide, replay
from rheostat.analyze.judging import Measures
from rheostat.engines.simulator.comparison import Progress
from rheostat.engines.simulator.following import prepare
from rheostat.model.errors import UserError
from rheostat.workloads import Curve, sample

AHEAD = (1, 5, 15)  # steps; at the usual step, minutes
METHODS = ("last", "line", "trend", "season", "network", "ar", "best")
REACTIVE = "none"  # no forecast: the nodes follow the present load
MOST_STEPS = 200_000
LAG_WEIGHT = 1 / 60  # a mean lag of a minute costs as much as the oracle's nodes


@dataclass(frozen=True, eq=False)
class Judged:
    """A method on a load."""

    replay: Replay | None  # None: no forecast
    following: Measures  # simulated

    @property
    def cost(self) -> float:
        """What following it cost: node-seconds over the oracle's, and the mean lag in minutes."""
        return self.following.node_seconds_to_oracle + LAG_WEIGHT * self.following.mean_lag_seconds


@dataclass(frozen=True, eq=False)
class Backtest:
    """All methods on one load."""

    load: Load
    judged: Mapping[str, Judged]

    @property
    def cheapest(self) -> str:
        """The method that cost least to follow."""
        return min(self.judged, key=lambda name: self.judged[name].cost)


def read_methods(text: str) -> dict[str, Forecaster]:
    """Build the forecasters of a comma-separated list; UserError if there is none, or one twice."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise UserError(f"--methods is empty; choose among {', '.join(METHODS)}")
    if len(set(names)) < len(names):
        raise UserError("--methods names a method twice")
    return {name: find_forecaster(name) for name in names}


def load_of(curve: Curve, step_seconds: float | None, share: float, seed: int) -> Load:
    """A curve at even steps: of a minute, or as far apart as the points of a trace that is coarser."""
    step = step_seconds or max(60.0, curve.resolution_seconds)
    if curve.duration_seconds / step > MOST_STEPS:
        raise UserError(
            f"more than {MOST_STEPS:,} steps of {step:g} s; give a longer --step or set duration="
        )
    rates = sample(curve, step, seed)
    if not rates.any():
        raise UserError("the load is zero throughout: there is nothing to forecast")
    return divide(rates, step, share, curve.begins_at * curve.day_seconds / 86_400)


def backtest(
    load: Load, methods: Mapping[str, Forecaster], day_seconds: float, begin: Callable[[str], Progress]
) -> Backtest:
    """Train and judge every method; `begin` starts a progress bar by name."""
    ground = prepare(load)
    judged = {REACTIVE: Judged(None, ground.cost(()))}
    for name, forecaster in methods.items():
        advance = begin(name)
        paced = forecaster.paced(load.step_seconds, day_seconds)
        replayed = replay(name, paced, load, max(*AHEAD, ground.ahead), advance)
        judged[name] = Judged(replayed, ground.cost(replayed.forecasts))
        advance(1.0)
    return Backtest(load, judged)
