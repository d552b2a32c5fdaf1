"""What a run of a trial measured: its series judged beside an oracle that knows what the peak used."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from rheostat.analyze.execution import ceil
from rheostat.analyze.forecasts.line import fit
from rheostat.analyze.judging import WINDOW_SECONDS, Floats, Measures, Series, judge
from rheostat.trials.trial import Result, Trial


def measure(trial: Trial, result: Result, needed: Callable[[Floats], Floats]) -> Measures:
    """Judge one run; `needed` says the cores that a load needs, for the oracle."""
    cores, bounds = trial.node.cores, trial.nodes
    enough = np.ceil(needed(result.series.load) / cores - 1e-9)
    oracle = np.clip(enough, bounds.min_nodes, bounds.max_nodes)
    priced = replace(result.series, price_per_hour=trial.node.price_per_hour * result.series.nodes)
    return judge(priced, oracle, bounds.max_nodes, result.changes, window_seconds(trial))


def window_seconds(trial: Trial) -> float:
    """Return the seconds over which throughput is compared with load: whole triggers."""
    return max(WINDOW_SECONDS, ceil(WINDOW_SECONDS / trial.trigger_seconds) * trial.trigger_seconds)


def smooth(series: Series, window: float) -> Series:
    """Smooth a series for drawing: its steps between two batches would hide everything else."""
    around = min(len(series.lag), round(window / series.step_seconds))
    before, after = (around - 1) // 2, around // 2

    def windows(values: Floats) -> Floats:
        return np.lib.stride_tricks.sliding_window_view(np.pad(values, (before, after), "edge"), around)

    return replace(
        series, throughput=windows(series.throughput).mean(axis=1), lag=windows(series.lag).max(axis=1)
    )


def cores_needed(work: Sequence[tuple[float, float]]) -> Callable[[Floats], Floats]:
    """Return the cores that a load needs, for the oracle: a line through what the reference used."""
    if len({load for load, _ in work}) < 2:
        return np.zeros_like
    line = fit([load for load, _ in work], [cores for _, cores in work])
    return lambda load: np.asarray(np.maximum(0.0, line.at(0.0) + line.slope * load))
