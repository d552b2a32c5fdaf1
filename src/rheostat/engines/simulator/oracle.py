"""The oracle: the fewest nodes that serve a load whose future is known."""

import math

import numpy as np
from scipy.ndimage import maximum_filter1d, uniform_filter1d

from rheostat.analyze.execution import ceil
from rheostat.analyze.rates import visits
from rheostat.engines.simulator.deployment import Floats
from rheostat.engines.simulator.settings import Settings
from rheostat.model.configuration import Bounds
from rheostat.model.topology import Topology

SMOOTH_SECONDS = 10.0  # shorter peaks than this may wait in a queue


def oracle_nodes(topology: Topology, load: Floats, settings: Settings, bounds: Bounds) -> Floats:
    """Return the nodes to pay for at each step; they too must be ordered a start-up time in advance."""
    size = max(1, round(SMOOTH_SECONDS / settings.step_seconds))
    smooth = uniform_filter1d(load, size, mode="nearest")
    limits: list[float] = []  # the highest load that 1, 2, 3, ... nodes serve
    peak = float(smooth.max()) if len(smooth) else 0.0
    while (not limits or limits[-1] < peak) and len(limits) < bounds.max_nodes:
        limits.append(highest_load(topology, len(limits) + 1, settings))
        if len(limits) > 1 and limits[-1] <= limits[-2] and limits[-1] > 0:
            break  # another node no longer helps: an operator's own limit is reached
    needed = np.searchsorted(np.array(limits), smooth - 1e-9) + 1.0
    needed = np.clip(needed, bounds.min_nodes, bounds.max_nodes)
    ahead = round(settings.kinds[0].startup_seconds / settings.step_seconds)
    if ahead == 0:
        return np.asarray(needed, dtype=np.float64)
    padded = np.concatenate([needed, np.full(ahead, needed[-1])])
    future = maximum_filter1d(padded, size=ahead + 1, origin=-((ahead + 1) // 2), mode="nearest")
    return np.asarray(future[: len(needed)], dtype=np.float64)


def highest_load(topology: Topology, nodes: int, settings: Settings) -> float:
    """Return the highest load that any parallelism on this many nodes serves."""
    kind = settings.kinds[0]
    room = settings.overhead.room(kind.cores) - (kind.executors - 1) * settings.executor_idle_cores
    per_row = visits(topology)
    costs = {o.name: per_row[o.name] * o.cost_seconds for o in topology.operators}
    total = sum(costs.values())
    limit = nodes * room / total if total > 0 else math.inf
    if math.isinf(limit):  # rows that cost next to nothing
        return limit
    core = min(1.0, room)
    limits = [o.max_parallelism * core / costs[o.name] for o in topology.operators if costs[o.name] > 0]
    limit = min([limit, *limits])
    if settings.mode == "staged":
        overhead = len(costs) * settings.stage_overhead_seconds / settings.trigger_seconds
        return limit * max(0.0, 1 - overhead)
    if settings.mode == "storm":
        return limit
    # Every instance holds a slot: the highest load whose instances fit, found by bisection.
    low, high = 0.0, limit
    for _ in range(40):
        middle = (low + high) / 2
        instances = sum(max(1, ceil(middle * cost / core)) for cost in costs.values())
        low, high = (middle, high) if instances <= nodes * kind.slots else (low, middle)
    return low
