"""Costs of micro-batches: a fixed part per batch, and a part per row."""

from collections.abc import Mapping, Sequence
from math import log
from typing import Any

import numpy as np

from rheostat.analyze.evaluation import Evaluation
from rheostat.model.observation import Observation
from rheostat.model.topology import Topology

REMEMBERED = 10  # windows, at any loads, that costs are learned from: costs change, and not only at the start
SAME_LOAD = 0.2  # loads that differ by less than this fraction of the median load count as equal

Sample = Sequence[
    Any
]  # the load in rows/s, and the slots that each operator kept busy at it: plain JSON data


class BatchCosts:
    """Medians over the windows remembered, because windows with cold JVMs cost several times as much.

    Loads that hardly differ cannot separate the two parts; then the whole cost is attributed to the rows.
    Cost that does not grow with the load is attributed to the batch.

    >>> from rheostat.model.topology import Operator
    >>> words = Topology("words", (Operator("a"), Operator("b")))
    >>> BatchCosts(words, [[100, {"a": 2.0, "b": 1.1}], [300, {"a": 4.0, "b": 1.0}]]).busy({"a": 400, "b": 0})
    {'a': 5.0, 'b': 1.05}
    """

    def __init__(self, topology: Topology, state: Sequence[Sample] = ()) -> None:
        self._topology = topology
        names = set(topology.names)  # a resumed run may have had other operators
        self._samples = [sample for sample in state if sample[1].keys() == names]

    @property
    def state(self) -> list[Sample]:
        return self._samples

    @property
    def windows(self) -> int:
        """The number of windows it has learned from and still remembers."""
        return len(self._samples)

    def learn(self, observation: Observation, evaluation: Evaluation) -> None:
        """Add a sample; a stale window repeats a batch that was already learned from."""
        load, repeated = observation.total_load or 0.0, observation.application.stale
        if not load or (repeated and self._samples):
            return
        busy = {name: slots * evaluation.load / load for name, slots in evaluation.busy.items()}
        self._samples = _latest([*self._samples, [evaluation.load, busy]])

    def busy(self, rates: Mapping[str, float]) -> dict[str, float]:
        load = sum(rates[name] for name in self._topology.sources)
        return _busy(load, self._samples)


def _latest(samples: list[Sample]) -> list[Sample]:
    """Drop the oldest sample at the most frequent load, so that a quiet night does not erase the day.

    >>> [load for load, _ in _latest([[100.0, {}]] * 9 + [[300.0, {}], [310.0, {}]])].count(100.0)
    8
    """
    if len(samples) <= REMEMBERED:
        return samples
    loads = [round(log(load, 1 + SAME_LOAD)) for load, _ in samples]
    oldest = loads.index(max(loads, key=loads.count))
    return [*samples[:oldest], *samples[oldest + 1 :]]


def _busy(load: float, samples: Sequence[Sample]) -> dict[str, float]:
    """Slots kept busy at a load, by the medians of all pairs of samples whose loads differ.

    >>> _busy(400, [[100, {"a": 9.0}], [100, {"a": 2.0}], [102, {"a": 2.04}]])
    {'a': 8.0}
    """
    if not samples:
        raise ValueError("busy() was called before learn()")
    names = list(samples[-1][1])
    loads = np.array([[load] for load, _ in samples])
    slots = np.array([[busy[name] for name in names] for _, busy in samples])
    by_rows = np.median(slots / loads, axis=0) * load
    first, second = np.triu_indices(len(samples), 1)
    apart = np.flatnonzero(np.abs(loads[second] - loads[first]) > SAME_LOAD * np.median(loads))
    if len(apart):
        first, second = first[apart], second[apart]
        slopes = (slots[second] - slots[first]) / (loads[second] - loads[first])
        per_row = np.maximum(0.0, np.median(slopes, axis=0))
        per_batch = np.median(slots - per_row * loads, axis=0)
        by_rows = np.where(per_batch >= 0, per_batch + per_row * load, by_rows)
    return dict(zip(names, by_rows.tolist(), strict=True))
