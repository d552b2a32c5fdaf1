"""Measures of how good a run was, computed from its series alone."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

WINDOW_SECONDS = 10.0  # throughput is compared with the load over windows of this length
STEP_CHANGE = 0.25  # a load that changes by more than this within two windows is a step
SETTLED = 0.1  # throughput has settled if it is within this fraction of the load


@dataclass(frozen=True, slots=True)
class Series:
    """A run as series with equal steps."""

    step_seconds: float
    load: Floats  # rows/s
    throughput: Floats  # source rows/s
    lag: Floats  # seconds
    nodes: Floats  # paid for
    instances: Floats
    price_per_hour: Floats | None = None  # of all nodes together; None: unknown


@dataclass(frozen=True, slots=True)
class Measures:
    """One row of a comparison."""

    throughput_degradation: float  # mean of |load - throughput| / load
    mean_lag_seconds: float
    p99_lag_seconds: float
    nodes_saved: float  # fraction saved against peak provisioning
    node_seconds: float
    money: float | None  # the cost of the nodes, if their kinds have prices
    node_seconds_to_oracle: float  # ratio; 1: as good as knowing the future
    mean_nodes: float
    mean_instances: float
    reconfigurations: int
    settling_seconds: float | None  # mean over the load's steps; None: the load has no steps
    overshoot: float  # how far the peak of nodes used exceeds the peak needed


def judge(
    run: Series, oracle_nodes: Floats, peak_nodes: int, reconfigurations: int, window: float = WINDOW_SECONDS
) -> Measures:
    """Judge a run against peak provisioning and against an oracle on the same load."""
    window = min(window, len(run.load) * run.step_seconds)  # a shorter run is one window
    load, throughput = _windows(run.load, run, window), _windows(run.throughput, run, window)
    error = np.abs(load - throughput) / np.where(load > 0, load, np.nan)
    seconds = run.step_seconds
    return Measures(
        throughput_degradation=float(np.nanmean(error)) if np.isfinite(error).any() else 0.0,
        mean_lag_seconds=float(run.lag.mean()),
        p99_lag_seconds=float(np.percentile(run.lag, 99)),
        nodes_saved=1 - float(run.nodes.mean()) / peak_nodes,
        node_seconds=float(run.nodes.sum()) * seconds,
        money=_money(run),
        node_seconds_to_oracle=float(run.nodes.sum() / oracle_nodes.sum()),
        mean_nodes=float(run.nodes.mean()),
        mean_instances=float(run.instances.mean()),
        reconfigurations=reconfigurations,
        settling_seconds=_settling(load, error, window),
        overshoot=max(0.0, float(run.nodes.max() / oracle_nodes.max()) - 1),
    )


def _money(run: Series) -> float | None:
    if run.price_per_hour is None or not run.price_per_hour.any():
        return None
    return float(run.price_per_hour.sum()) * run.step_seconds / 3600


def _windows(series: Floats, run: Series, window: float) -> Floats:
    size = max(1, round(window / run.step_seconds))
    whole = len(series) // size * size
    return np.asarray(series[:whole].reshape(-1, size).mean(axis=1))


def _settling(load: Floats, error: Floats, window: float) -> float | None:
    """Mean time from a step of the load until the throughput follows it for a minute."""
    if len(load) < 4:
        return None
    before, after = load[:-2], load[2:]
    change = np.abs(after - before) / np.maximum(np.maximum(before, after), 1e-9)
    steps: list[int] = []
    for index in np.flatnonzero(change > STEP_CHANGE).tolist():
        if not steps or index - steps[-1] > 120 / window:
            steps.append(index)
    if not steps:
        return None
    minute = max(1, round(60 / window))
    good = np.nan_to_num(error, nan=0.0) <= SETTLED
    times = []
    for number, index in enumerate(steps):
        last = steps[number + 1] if number + 1 < len(steps) else len(good)
        settled = next((k for k in range(index + 2, last) if good[k : k + minute].all()), last)
        times.append((settled - index - 1) * window)
    return float(np.mean(times))
