"""The exact optimum where every part of the topology is a pipeline: no branch, no join, no solver.

A pipeline emits the least of its components' capacities, each multiplied by what one row processed
there becomes at the end. So the best b units go, one by one, to whichever component is the least: the
b-th value of one ascending list. Independent pipelines then share the budget, a knapsack over b.
The programme cannot do it: after 45 s on 20 pipelines of 100 components it was 5 % short of a proof.
"""

from dataclasses import dataclass
from heapq import heapify, heapreplace
from itertools import pairwise

import numpy as np

from rheostat.allocate.compute_model import TOLERANCE, ComputeModel, Floats, Ints

MAX_WORK = 500_000_000  # pipelines × units × units, up to 1.5 s; beyond, the programme is asked
HUGE = 1e100  # rows per second that only nonsense reaches; products beyond it may overflow


@dataclass(frozen=True, slots=True)
class _Pipeline:
    given: Ints  # who gets the first unit, the second, ...
    emitted: Floats  # with 0, 1, 2, ... units


def pipeline_units(model: ComputeModel, units: int) -> Ints | None:
    """The best allocation of at most `units` units, the fewest among equals; None if it is not our case."""
    parents = np.diff(model.shares.indptr)
    if parents.max(initial=0) > 1 or any(len(children) > 1 for children in model.children):
        return None
    sources = np.flatnonzero(model.source)
    if sources.size * units**2 > MAX_WORK:
        return None
    pipelines = []
    for source in sources:
        members, worth = _worth(model, int(source))
        if not (worth < HUGE).all():
            return None
        if worth.all():
            pipelines.append(_fill(members, worth, model.units[members], units))
    added = model.nothing()
    for pipeline, number in zip(pipelines, _share(pipelines, units), strict=True):
        np.add.at(added, pipeline.given[:number], 1)
    return added


def _worth(model: ComputeModel, source: int) -> tuple[Ints, Floats]:
    """The components from a source to its leaf, and what the leaf emits for one unit of each at work."""
    members = [source]
    while model.children[members[-1]]:
        members.append(model.children[members[-1]][0])
    order = np.array(members)
    shares = [model.shares[child, parent] for parent, child in pairwise(members)]
    with np.errstate(over="ignore", invalid="ignore"):  # the caller declines what is not finite
        passed = np.cumprod((model.ratio[order] * np.array([*shares, 1.0]))[::-1])[::-1]
        return order, model.unit_rate[order] * passed


def _fill(members: Ints, worth: Floats, held: Floats, units: int) -> _Pipeline:
    """Raise the least component, one unit at a time.

    >>> _fill(np.array([0, 1]), np.array([300.0, 100.0]), np.array([1.0, 1.0]), 3)
    _Pipeline(given=array([1, 1, 0]), emitted=array([100., 200., 300., 300.]))
    """
    has = held.copy()
    least = [(float(level), place) for place, level in enumerate(worth * held)]
    heapify(least)
    given, emitted = np.zeros(units, dtype=np.int64), np.zeros(units + 1)
    for number in range(units):
        emitted[number], place = least[0]
        given[number] = members[place]
        has[place] += 1
        heapreplace(least, (float(worth[place] * has[place]), place))
    emitted[units] = least[0][0]
    return _Pipeline(given, emitted)


def _share(pipelines: list[_Pipeline], units: int) -> list[int]:
    """How many units each pipeline gets; a dynamic programme over the budget, pipeline by pipeline."""
    best = np.zeros(units + 1)  # of the pipelines so far, for each budget
    choices = np.zeros((len(pipelines), units + 1), dtype=np.int64)
    for row, pipeline in enumerate(pipelines):
        before, best = best, best + pipeline.emitted[0]
        for number in np.flatnonzero(np.diff(pipeline.emitted) > 0) + 1:
            reached = before[: units + 1 - number] + pipeline.emitted[number]
            better = reached > best[number:]
            best[number:][better] = reached[better]
            choices[row, number:][better] = number
    budget = int(np.argmax(best >= best[-1] * (1 - TOLERANCE)))
    numbers = []
    for row in range(len(pipelines) - 1, -1, -1):
        numbers.append(int(choices[row, budget]))
        budget -= numbers[-1]
    return numbers[::-1]
