"""The compute model (P4, §5.2.3-5.2.4): the rates that result from giving units to components.

Sources emit as much as their units allow. Every other component receives the sum over its parents of
output × share, processes min(input, capacity), drops the rest (there is no back-pressure) and
emits processed × ratio. The throughput is what the leaves emit.

On Spark the instances may also share CPU (`MeasuredTopology.cores`). Then the capacity of a component is the
smaller of that and of what its instances' part of the CPU allows; without such a limit the model is P4's.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from rheostat.allocate.measured import MeasuredTopology
from rheostat.allocate.shared_cpu import fair_level
from rheostat.model.errors import UserError, nearest

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

UNLIMITED = 1e300  # rows per second and core of a component that takes no CPU
TOLERANCE = 1e-9  # relative; rates closer than this count as equal


@dataclass(frozen=True, slots=True)
class Rates:
    """Rows per second of every component, in the order of the file; columns, if any, are allocations."""

    input: Floats
    capacity: Floats
    processed: Floats
    output: Floats


class ComputeModel:
    """A measured topology as arrays, level by level, so that many allocations are evaluated at once."""

    def __init__(self, topology: MeasuredTopology) -> None:
        components = topology.components
        self.names = tuple(component.name for component in components)
        self.index = {name: i for i, name in enumerate(self.names)}
        self.size = len(components)
        self.units = np.array([component.units for component in components], dtype=np.float64)
        self.unit_rate = np.array([component.unit_rate for component in components])
        self.ratio = np.array([component.ratio for component in components])
        self.cpu_seconds = np.array([component.cpu_seconds for component in components])
        self.cores = topology.cores
        self.source = np.array([component.source for component in components])
        self.given = np.array([component.given for component in components])
        self.leaf = np.array([not component.children for component in components])
        self.children = tuple(
            tuple(self.index[child] for child in component.children) for component in components
        )
        edges = [
            (self.index[child], i, share)
            for i, component in enumerate(components)
            for child, share in component.children.items()
        ]
        rows, columns, shares = zip(*edges, strict=True) if edges else ((), (), ())
        self.shares = csr_array(
            (np.array(shares, dtype=np.float64), (np.array(rows, dtype=int), np.array(columns, dtype=int))),
            shape=(self.size, self.size),
        )
        self.levels = tuple((level, self.shares[level]) for level in self._levels())
        self.order = tuple(int(i) for level, _ in self.levels for i in level)
        self.holding = tuple(  # parent, child that holds its rows back, rows to it per row of the parent
            (i, self.index[child], share * components[i].ratio)
            for i in reversed(self.order)
            for child, share in components[i].children.items()
            if components[self.index[child]].held_back and share * components[i].ratio > 0
        )

    def _levels(self) -> Iterator[Ints]:
        """Components by their longest distance from a root: each level depends on earlier ones only."""
        waiting = [0] * self.size
        for children in self.children:
            for child in children:
                waiting[child] += 1
        level = [i for i in range(self.size) if not waiting[i]]
        while level:
            yield np.array(level)
            following = []
            for i in level:
                for child in self.children[i]:
                    waiting[child] -= 1
                    if not waiting[child]:
                        following.append(child)
            level = sorted(following)

    def rates(self, added: Ints) -> Rates:
        """Propagate the rates from the sources with `added` units; a matrix has an allocation per column."""
        instances = self._column(self.units, added) + np.where(self._column(self.given, added), 0, added)
        capacity = self._column(self.unit_rate, added) * instances
        if self.cores is not None:
            capacity = self._shared(capacity, instances, self.cores)
        return self._flow(capacity)

    def _shared(self, capacity: Floats, instances: Floats, cores: float) -> Floats:
        """What the components can process if their instances' even part of the CPU is all that they get."""
        cpu = self._column(self.cpu_seconds, capacity)
        per_core = np.divide(instances, cpu, out=np.full(capacity.shape, UNLIMITED), where=cpu > 0)

        def within(level: Floats) -> Floats:
            return np.asarray(np.minimum(capacity, level * per_core))

        def used(level: Floats) -> Floats:
            return np.asarray((self._flow(self._holding_back(within(level))).processed * cpu).sum(axis=0))

        level = fair_level(used, float((self.unit_rate * self.cpu_seconds).max()), cores)
        return within(level)

    def _holding_back(self, capacity: Floats) -> Floats:
        """What the components can process if rows that another one holds back take no CPU before it.

        That changes how much CPU is left, but not what comes out: P4's model drops those rows.
        """
        capacity = capacity.copy()
        for i, child, rows in self.holding:
            capacity[i] = np.minimum(capacity[i], capacity[child] / rows)
        return capacity

    def _column(self, values: NDArray[Any], like: NDArray[Any]) -> NDArray[Any]:
        return values.reshape(self.size, *(1,) * (like.ndim - 1))

    def _flow(self, capacity: Floats) -> Rates:
        """Propagate the rates, level by level."""
        received, processed, output = (np.zeros(capacity.shape) for _ in range(3))
        across = (1,) * (capacity.ndim - 1)
        for level, shares in self.levels:
            received[level] = np.asarray(shares @ output)
            source = self.source[level].reshape(-1, *across)
            processed[level] = np.where(source, capacity[level], np.minimum(received[level], capacity[level]))
            output[level] = processed[level] * self.ratio[level].reshape(-1, *across)
        return Rates(received, capacity, processed, output)

    def throughput(self, added: Ints) -> Floats:
        """The sum of what the leaves emit, for each allocation."""
        emitted = self.rates(added).output[self.leaf]
        return np.asarray(np.add.reduce(emitted, axis=0))

    def nothing(self) -> Ints:
        """The allocation that adds no units."""
        return np.zeros(self.size, dtype=np.int64)

    def candidates(self, rates: Rates) -> Ints:
        """Which components may get the next unit (§4.1, §5.2.5, §6.2.1).

        Those that drop rows, if any; else those exactly at their limit, which drop rows first when a
        source grows; else the sources, except those whose load is given. The paper states both input > rate
        and input >= rate: only this order yields Table 6.4 (which needs the first) and Table 6.2 (whose last
        row needs the second).
        """
        useful = ~self.source & (self.unit_rate > 0)
        over = useful & (rates.input > rates.capacity * (1 + TOLERANCE))
        full = useful & (rates.input > 0) & (rates.input >= rates.capacity * (1 - TOLERANCE))
        sources = self.source & ~self.given & (self.unit_rate > 0)
        return np.flatnonzero(over if over.any() else full if full.any() else sources)

    def reach(self) -> Bools:
        """Row i marks i and everything downstream of it."""
        reach = np.eye(self.size, dtype=np.bool_)
        for i in reversed(self.order):
            for child in self.children[i]:
                reach[i] |= reach[child]
        return reach

    def named(self, added: Ints) -> dict[str, int]:
        """The allocation by name, with only the components that get units."""
        return {self.names[i]: int(added[i]) for i in np.flatnonzero(added)}


def throughput(topology: MeasuredTopology, allocation: Mapping[str, int] | None = None) -> float:
    """Predict the throughput of a topology once `allocation` is applied.

    >>> from rheostat.allocate.measured import Component
    >>> slow = Component("b", max_rate=400)
    >>> line = MeasuredTopology("line", (Component("a", 500, source=True, children={"b": 1}), slow))
    >>> throughput(line), throughput(line, {"b": 1})
    (400.0, 500.0)

    Where a row takes `b` 2.5 ms of CPU and there is one core, another instance of `b` changes nothing.

    >>> slow = Component("b", max_rate=400, cpu_seconds=0.0025)
    >>> shared = MeasuredTopology("line", (line.components[0], slow), cores=1.0)
    >>> throughput(shared), round(throughput(shared, {"b": 1}), 6)
    (400.0, 400.0)
    """
    model = ComputeModel(topology)
    added = model.nothing()
    for name, units in (allocation or {}).items():
        if name not in model.index:
            raise UserError(f"there is no component {name!r}{nearest(name, model.names)}")
        added[model.index[name]] = units
    return float(model.throughput(added))


def cores_used(topology: MeasuredTopology) -> float:
    """The CPU that the components take, as far as the CPU of a row is known.

    >>> from rheostat.allocate.measured import Component
    >>> costly = Component("b", max_rate=400, cpu_seconds=0.002)
    >>> cores_used(MeasuredTopology("line", (Component("a", 300, source=True, children={"b": 1}), costly)))
    0.6
    """
    model = ComputeModel(topology)
    return float(model.rates(model.nothing()).processed @ model.cpu_seconds)
