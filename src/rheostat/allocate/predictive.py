"""The predictive allocator (P4, chapter 5): whole batches that leave no congestion downstream.

Our corrections to the printed Algorithms 4 and 5 are listed in docs/policies/allocators.md.
"""

import numpy as np

from rheostat.allocate.allocation import Allocation, check_units, settle_both
from rheostat.allocate.compute_model import TOLERANCE, Bools, ComputeModel, Floats, Ints
from rheostat.allocate.measured import MeasuredTopology
from rheostat.allocate.unit_batches import Batches, first_batches, larger_batches

TINY = 1e-6  # rows per second; less is a rounding error


def predictive(topology: MeasuredTopology, units: int) -> Allocation:
    """Allocate `units` units in batches; the remainder goes towards the cheapest batch it cannot pay for.

    >>> from rheostat.allocate.measured import Component
    >>> end = Component("c", max_rate=100)
    >>> middle = Component("b", max_rate=300, children={"c": 1})
    >>> line = MeasuredTopology("line", (Component("a", 400, source=True, children={"b": 1}), middle, end))
    >>> predictive(line, 4).units, predictive(line, 4).gain
    ({'b': 1, 'c': 3}, 300.0)

    With fewer units than a batch needs, the optimal output leaves them unspent.

    >>> halves = MeasuredTopology("halves", (Component("a", 400, source=True, children={"b": 1}),
    ...     Component("b", 200, children={"c": 0.5, "d": 0.5}), Component("c", 100), Component("d", 100)))
    >>> predictive(halves, 2).units, predictive(halves, 2).optimal.units
    ({'b': 1, 'c': 1}, {})
    """
    check_units(units)
    model = ComputeModel(topology)
    return settle_both(model, *both_outputs(model, units))


def predictive_units(model: ComputeModel, units: int) -> Ints:
    """The predictive allocation as an array, residual units included."""
    return both_outputs(model, units)[1]


def both_outputs(model: ComputeModel, units: int) -> tuple[Ints, Ints]:
    """P4's optimal and residual allocation as arrays (§5.2.6; Algorithm 4 without Stela's part).

    The optimal one ends where no whole batch that raises throughput can be paid for: a unit beyond it
    worsens congestion, or gains nothing.
    """
    reach = model.reach()
    everywhere = np.ones(model.size, dtype=np.bool_)
    scope = everywhere  # the subtree in which residual units are being spent (§5.2.6)
    added = model.nothing()
    optimal: Ints | None = None
    remaining = units
    while remaining > 0:
        rates = model.rates(added)
        heads = model.candidates(rates)
        if not heads.size:
            break
        if not scope[heads].any():
            scope = everywhere
        first = first_batches(model, reach, added, heads[scope[heads]])
        affordable = first[first.cost <= remaining]
        if affordable.head.size:
            batches = larger_batches(model, reach, added, affordable, remaining)
            step = _merge(model, reach, added, batches, remaining)
        else:
            step = model.nothing()
            cheapest = int(np.lexsort((-first.gain, first.cost))[0])
            step[first.head[cheapest]] = 1
            scope = reach[first.head[cheapest]]
        if optimal is None and not (affordable.head.size and _gains(model, added, step)):
            optimal = added.copy()
        added += step
        remaining -= int(step.sum())
    return added if optimal is None else optimal, added


def _gains(model: ComputeModel, added: Ints, step: Ints) -> bool:
    before, after = model.throughput(np.stack([added, added + step], axis=1))
    return bool(after > before * (1 + TOLERANCE))


def _merge(model: ComputeModel, reach: Bools, added: Ints, batches: Batches, budget: int) -> Ints:
    """Combine batches by gain per unit, or starting from the one with the highest gain if that gives more.

    Greedy by density alone may let a small batch displace a far better large one (Table 6.6 with
    two units); starting with the best single batch is the usual remedy.
    """
    by_density = _walk(model, batches, budget, reach, added, None)
    by_gain = _walk(model, batches, budget, reach, added, int(np.argmax(batches.gain)))
    outcomes = model.throughput(np.stack([added + by_density, added + by_gain], axis=1))
    return by_gain if outcomes[1] > outcomes[0] * (1 + TOLERANCE) else by_density


def _walk(
    model: ComputeModel, batches: Batches, budget: int, reach: Bools, added: Ints, start: int | None
) -> Ints:
    """Take batches by additional gain per unit; one from upstream replaces those below it (lines 28-40).

    Batches that together congest a component that they share are not taken together.
    """
    dropped = _dropped(model, added)
    chosen: list[int] = []
    paid_cost, paid_gain = np.zeros(batches.head.size), np.zeros(batches.head.size)
    alive = np.ones(batches.head.size, dtype=np.bool_)
    merged = np.zeros(batches.plans.shape[0], dtype=np.int64)
    pick = start
    while True:
        if pick is None:
            cost = np.maximum(batches.cost - paid_cost, 1)
            open_ = np.flatnonzero(alive & (cost <= budget - merged.sum()))
            if not open_.size:
                return merged
            density = (batches.gain[open_] - paid_gain[open_]) / cost[open_]
            best = open_[density >= density.max() - TOLERANCE * abs(density.max())]
            pick = int(best[np.argmin(batches.cost[best])])
        head = batches.head[pick]
        replaced = [batch for batch in chosen if reach[head, batches.head[batch]]]
        kept = [batch for batch in chosen if batch not in replaced] + [pick]
        # A superset replaces its subset, shared units count once.
        together = batches.plans[:, kept].max(axis=1)
        if (_dropped(model, added + together) > dropped * (1 + TOLERANCE) + TINY).any():
            alive[pick], pick = False, None
            continue
        for batch, sign in [(pick, 1), *((old, -1) for old in replaced)]:
            above = reach[batches.head, batches.head[batch]]
            paid_cost[above] += sign * batches.cost[batch]
            paid_gain[above] += sign * batches.gain[batch]
        chosen, merged = kept, together
        alive &= ~reach[head, batches.head] | (
            (batches.head == head) & (batches.head_units > batches.head_units[pick])
        )
        pick = None


def _dropped(model: ComputeModel, added: Ints) -> Floats:
    """Rows per second that each component receives beyond its capacity."""
    rates = model.rates(added)
    return np.where(model.source, 0.0, np.maximum(0.0, rates.input - rates.capacity))
