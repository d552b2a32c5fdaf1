"""The predictive allocator (P4, chapter 5): whole batches that leave no congestion downstream.

Our corrections to the printed Algorithms 4 and 5 are listed in docs/policies/allocators.md.
"""

from collections.abc import Callable

import numpy as np

from rheostat.allocate.allocation import Allocation, check_units, settle_both
from rheostat.allocate.compute_model import TOLERANCE, Bools, ComputeModel, Floats, Ints
from rheostat.allocate.measured import MeasuredTopology
from rheostat.allocate.unit_batches import Batches, first_batches, larger_batches

Check = Callable[[Ints], bool]
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

    The residual one spends what the optimal one leaves; or everything anew, without regard to congestion
    where batches overlap, if that gives more.
    """
    optimal = _whole_batches(model, units)
    rest = _spend(model, optimal, units - int(optimal.sum()))
    anew = _spend(model, model.nothing(), units)
    outcomes = model.throughput(np.stack([rest, anew], axis=1))
    return optimal, anew if outcomes[1] > outcomes[0] * (1 + TOLERANCE) else rest


def _whole_batches(model: ComputeModel, units: int) -> Ints:
    """Take batches that raise throughput and worsen no congestion, as long as one can be paid for."""
    reach = model.reach()
    added = model.nothing()
    while (remaining := units - int(added.sum())) > 0:
        first = first_batches(model, reach, added, model.candidates(model.rates(added)))
        affordable = first[first.cost <= remaining]
        if not affordable.head.size:
            break
        batches = larger_batches(model, reach, added, affordable, remaining)
        step = _merge(model, reach, added, batches, remaining, whole=True)
        before, after = model.throughput(np.stack([added, added + step], axis=1))
        if after <= before * (1 + TOLERANCE):
            break
        added += step
    return added


def _spend(model: ComputeModel, given: Ints, units: int) -> Ints:
    """Spend all units on top of those that are given."""
    reach = model.reach()
    everywhere = np.ones(model.size, dtype=np.bool_)
    scope = everywhere  # the subtree in which residual units are being spent (§5.2.6)
    added = given.copy()
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
            step = _merge(model, reach, added, batches, remaining, whole=False)
        else:
            step = model.nothing()
            cheapest = int(np.lexsort((-first.gain, first.cost))[0])
            step[first.head[cheapest]] = 1
            scope = reach[first.head[cheapest]]
        added += step
        remaining -= int(step.sum())
    return added


def _merge(
    model: ComputeModel, reach: Bools, added: Ints, batches: Batches, budget: int, *, whole: bool
) -> Ints:
    """Combine batches by gain per unit, or starting from the one with the highest gain if that gives more.

    Greedy by density alone may let a small batch displace a far better large one (Table 6.6 with
    two units); starting with the best single batch is the usual remedy.
    """
    overloads = _overload_check(model, added) if whole else None
    by_density = _walk(batches, budget, reach, None, overloads)
    by_gain = _walk(batches, budget, reach, int(np.argmax(batches.gain)), overloads)
    outcomes = model.throughput(np.stack([added + by_density, added + by_gain], axis=1))
    return by_gain if outcomes[1] > outcomes[0] * (1 + TOLERANCE) else by_density


def _walk(batches: Batches, budget: int, reach: Bools, start: int | None, overloads: Check | None) -> Ints:
    """Take batches by additional gain per unit; one from upstream replaces those below it (lines 28-40).

    `overloads` refuses batches that together congest a component which they share.
    """
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
        if overloads and overloads(together):
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


def _overload_check(model: ComputeModel, added: Ints) -> Check:
    """Whether a plan on top of `added` makes any component drop more rows."""

    def dropped(plan: Ints) -> Floats:
        rates = model.rates(plan)
        return np.where(model.source, 0.0, np.maximum(0.0, rates.input - rates.capacity))

    allowed = dropped(added) * (1 + TOLERANCE) + TINY
    return lambda plan: bool((dropped(added + plan) > allowed).any())
