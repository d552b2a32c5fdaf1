"""The batches of the predictive allocator (P4, §5.2.5, Algorithm 5 lines 5-25).

A batch gives some units to one congested component, its head, and to every component downstream
of it just enough to keep it from dropping rows.
"""

from dataclasses import dataclass

import numpy as np

from rheostat.allocate.compute_model import TOLERANCE, Bools, ComputeModel, Floats, Ints

COLUMNS = 2048  # batches evaluated at once; bounds the memory
STEPS = (
    *range(2, 9),
    *(2**i for i in range(4, 14)),
)  # beyond 8 units for a head, doublings: bounds the memory
HUGE = 1e30  # a rate that no number of units can process


@dataclass(frozen=True, slots=True)
class Batches:
    """One batch per column of `plans`, with its cost and its gain."""

    head: Ints
    head_units: Ints
    plans: Ints
    cost: Floats
    gain: Floats

    def __getitem__(self, chosen: Bools | Ints) -> "Batches":
        return Batches(
            self.head[chosen],
            self.head_units[chosen],
            self.plans[:, chosen],
            self.cost[chosen],
            self.gain[chosen],
        )


def first_batches(model: ComputeModel, reach: Bools, added: Ints, heads: Ints) -> Batches:
    """The smallest batch of each head, whatever its cost."""
    return _batches(model, reach, added, heads, np.ones(heads.size, dtype=np.int64))


def larger_batches(
    model: ComputeModel, reach: Bools, added: Ints, affordable: Batches, budget: int
) -> Batches:
    """The batches with more units for the head, until it drops nothing, as far as the budget goes.

    A source is never decongested: only the budget limits its units.
    """
    received = model.rates(added).input
    heads, numbers = [], []
    for head in affordable.head:
        max_units = budget
        if not model.source[head]:
            lacking = received[head] / model.unit_rate[head] * (1 - TOLERANCE)
            max_units = int(min(budget, np.ceil(lacking - model.units[head] - added[head])))
        more = np.array([n for n in STEPS if n < max_units] + [max_units] * (max_units > 1), dtype=np.int64)
        heads.append(np.full(more.size, head))
        numbers.append(more)
    all_heads, all_numbers = np.concatenate(heads), np.concatenate(numbers)
    parts = [affordable]
    for start in range(0, all_heads.size, COLUMNS):
        part = slice(start, start + COLUMNS)
        larger = _batches(model, reach, added, all_heads[part], all_numbers[part])
        parts.append(larger[larger.cost <= budget])
    return Batches(
        np.concatenate([part.head for part in parts]),
        np.concatenate([part.head_units for part in parts]),
        np.concatenate([part.plans for part in parts], axis=1),
        np.concatenate([part.cost for part in parts]),
        np.concatenate([part.gain for part in parts]),
    )


def _batches(model: ComputeModel, reach: Bools, added: Ints, heads: Ints, head_units: Ints) -> Batches:
    """Propagate each batch through the whole topology."""
    columns = np.arange(heads.size)
    plans = np.zeros((model.size, heads.size))
    plans[heads, columns] = head_units
    below = reach[heads].T
    below[heads, columns] = False
    held = (model.units + added)[:, None]
    output = np.zeros(plans.shape)
    for level, shares in model.levels:
        received = np.minimum(np.asarray(shares @ output), HUGE)
        rate = model.unit_rate[level, None]
        wanted = np.divide(received, rate, out=np.zeros(received.shape), where=rate > 0) * (1 - TOLERANCE)
        plans[level] += np.where(below[level], np.maximum(0, np.ceil(wanted - held[level])), 0)
        capacity = rate * (held[level] + plans[level])
        processed = np.where(model.source[level, None], capacity, np.minimum(received, capacity))
        output[level] = processed * model.ratio[level, None]
    cost = plans.sum(axis=0)
    whole = np.minimum(plans, 1e9).astype(np.int64)
    after = output[model.leaf].sum(axis=0)
    if model.cores is not None:  # the batch's own instances may not get the CPU
        after = model.throughput(added[:, None] + whole)
    gain = after - float(model.throughput(added))
    return Batches(heads, head_units, whole, cost, gain)
