"""The most that each component could process with K units; tight bounds speed up the programme."""

import numpy as np
from scipy.sparse import diags_array

from rheostat.allocate.compute_model import TOLERANCE, ComputeModel, Floats


def max_processed(model: ComputeModel, units: int) -> Floats:
    """The most each component can process, in units' worth of rows, when `units` serve it alone.

    For every budget b up to `units`, a component with q of them is limited by units + q and by what its
    parents can send with b - q each; the best q is where the two are equal, because the first rises with q
    and the second falls. For parents that share units the bound is too loose, never too tight.
    """
    budgets = np.arange(units + 1)
    best = np.zeros((model.size, units + 1))
    rate = np.where(model.unit_rate > 0, model.unit_rate, 1.0)
    can_process = model.unit_rate > 0
    emitted = diags_array(model.ratio * model.unit_rate)
    for level, shares in model.levels:
        sent = np.asarray((shares @ emitted) @ best)
        for row, i in enumerate(level):
            own = model.units[i] + budgets
            if model.source[i]:
                best[i] = model.units[i] if model.given[i] else own
            elif can_process[i]:
                best[i] = _meet(own.astype(np.float64), sent[row] / rate[i])
    return np.asarray(best[:, -1])


def _meet(own: Floats, sent: Floats) -> Floats:
    """For each budget b the largest min(own[q], sent[b - q]) over q in 0..b.

    >>> _meet(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 6.0]))
    array([1., 2., 2.])
    """
    budget = np.arange(own.size)
    low, high = np.zeros(own.size, dtype=np.int64), budget.copy()  # the last q with own[q] <= sent[b - q]
    while (low < high).any():
        middle = (low + high + 1) // 2
        rising = own[middle] <= sent[budget - middle]
        low, high = np.where(rising, middle, low), np.where(rising, high, middle - 1)
    after = np.minimum(low + 1, budget)
    before, beyond = np.minimum(own[low], sent[budget - low]), np.minimum(own[after], sent[budget - after])
    return np.asarray(np.maximum(before, beyond))


def useful_units(model: ComputeModel, processed: Floats, units: int) -> Floats:
    """How many units each component could use: none if no row passes it on the way to a leaf."""
    carries = (model.ratio > 0) & (model.unit_rate > 0)
    useful = carries & model.leaf
    edges = model.shares.tocoo()
    feeds = {(int(j), int(i)) for i, j, share in zip(*edges.coords, edges.data, strict=True) if share > 0}
    for i in reversed(model.order):
        useful[i] |= carries[i] and any(useful[child] for child in model.children[i] if (i, child) in feeds)
    wanted = np.ceil(processed * (1 - TOLERANCE) - model.units)
    return np.where(useful, np.clip(wanted, 0, units), 0.0)
