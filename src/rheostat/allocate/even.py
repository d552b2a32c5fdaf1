"""Among equal allocations, the one with the most even headroom."""

import numpy as np

from rheostat.allocate.compute_model import TOLERANCE, ComputeModel, Floats, Ints

MAX_WORK = 5_000_000  # components × components × units given; above this, evenness is not worth the time


def even_units(model: ComputeModel, added: Ints) -> Ints:
    """Move single units while the throughput stays and the headroom becomes more even.

    Headroom is capacity / input of each component that receives rows. Of two allocations, the more
    even is the one whose smallest headroom is larger; if equal, whose second smallest is, and so on.
    """
    donors = np.flatnonzero(added)
    if donors.size * model.size**2 > MAX_WORK:
        return added
    target = float(model.throughput(added)) * (1 - TOLERANCE)
    best, best_headroom = added, _headroom(model, added[:, None])[:, 0]
    for _ in range(int(added.sum())):
        improved = False
        for donor in np.flatnonzero(best):
            moved = np.repeat(best[:, None], model.size, axis=1)
            moved[donor] -= 1
            moved += np.eye(model.size, dtype=np.int64)
            moved = moved[:, model.throughput(moved) >= target]
            headrooms = _headroom(model, moved)
            for column in range(moved.shape[1]):
                if _more_even(headrooms[:, column], best_headroom):
                    best, best_headroom, improved = moved[:, column], headrooms[:, column], True
        if not improved:
            break
    return best


def _headroom(model: ComputeModel, added: Ints) -> Floats:
    rates = model.rates(added)
    idle = np.full(rates.input.shape, np.inf)
    return np.sort(np.divide(rates.capacity, rates.input, out=idle, where=rates.input > 0), axis=0)


def _more_even(first: Floats, second: Floats) -> bool:
    """Compare two sorted headrooms at the first place where they differ.

    >>> _more_even(np.array([1.0, 2.0]), np.array([1.0, 1.5]))
    True
    """
    differs = np.flatnonzero(~np.isclose(first, second, rtol=1e-9, atol=0))
    return bool(differs.size and first[differs[0]] > second[differs[0]])
