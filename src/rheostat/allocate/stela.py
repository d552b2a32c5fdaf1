"""Stela (P4, chapter 4): one unit at a time to the congested component with the highest ETP."""

import numpy as np

from rheostat.allocate.allocation import Allocation, check_units, settle
from rheostat.allocate.compute_model import TOLERANCE, ComputeModel, Floats, Ints, Rates
from rheostat.allocate.measured import MeasuredTopology


def stela(topology: MeasuredTopology, units: int) -> Allocation:
    """Give `units` units as Stela does (Algorithm 2).

    >>> from rheostat.allocate.measured import Component
    >>> end = Component("c", max_rate=100)
    >>> middle = Component("b", max_rate=300, children={"c": 1})
    >>> line = MeasuredTopology("line", (Component("a", 400, source=True, children={"b": 1}), middle, end))
    >>> stela(line, 2)
    Allocation(units={'c': 2}, throughput=300.0, gain=200.0, gap=None)
    """
    check_units(units)
    model = ComputeModel(topology)
    return settle(model, stela_units(model, units))


def stela_units(model: ComputeModel, units: int) -> Ints:
    """Stela's allocation as an array; units remain unspent only if no component can use any."""
    added = model.nothing()
    for _ in range(units):
        rates = model.rates(added)
        candidates = model.candidates(rates)
        if not candidates.size:
            break
        added[_choose(candidates, expected_throughput(model, rates, candidates), rates)] += 1
    return added


def expected_throughput(model: ComputeModel, rates: Rates, candidates: Ints) -> Floats:
    """The numerator of ETP (Algorithm 1): output of the sinks reached without crossing a candidate.

    The paper's queue visits a sink once per path; a set counts it once. The two differ only in a DAG.
    The denominator, the throughput, is the same for all and may be zero: it is left out.
    """
    crossed = set(candidates.tolist())
    leaves = np.flatnonzero(model.leaf)
    bit = {int(leaf): 1 << place for place, leaf in enumerate(leaves)}
    sinks = [0] * model.size  # a set of leaves as the bits of an integer: a union is one operation
    for i in reversed(model.order):
        reached = bit.get(i, 0)
        for child in model.children[i]:
            if child not in crossed:
                reached |= sinks[child]
        sinks[i] = reached
    width = (leaves.size + 7) // 8
    packed = b"".join(sinks[i].to_bytes(width, "little") for i in candidates.tolist())
    rows = np.frombuffer(packed, dtype=np.uint8).reshape(candidates.size, width)
    members = np.unpackbits(rows, axis=1, count=leaves.size, bitorder="little")
    return np.asarray(members @ rates.output[leaves])


def _choose(candidates: Ints, etp: Floats, rates: Rates) -> int:
    """The highest ETP; among equals the most congested component, then the first in the file."""
    best = candidates[etp >= etp.max() * (1 - TOLERANCE)]
    capacity = rates.capacity[best]
    congestion = np.divide(rates.input[best], capacity, out=np.zeros(best.size), where=capacity > 0)
    return int(best[np.argmax(congestion >= congestion.max() * (1 - TOLERANCE))])
