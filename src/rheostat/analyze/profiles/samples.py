"""The points that profiles are learned from: one per window in which everything needed was measured."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rheostat.model.observation import Observation

Floats = NDArray[np.float64]

COLD = 0.5  # of the CPU goes to compilers and class loading: such a window shows JVMs that start


@dataclass(frozen=True, slots=True)
class Samples:
    """Points (x, y) in the order of their windows."""

    x: Floats
    y: Floats

    def __len__(self) -> int:
        return len(self.x)

    def take(self, chosen: NDArray[np.bool_]) -> "Samples":
        """Some of the points."""
        return Samples(self.x[chosen], self.y[chosen])

    def split(self, share: float) -> tuple["Samples", "Samples"]:
        """The first points, and the last ones by their share."""
        first = len(self) - round(len(self) * share)
        return Samples(self.x[:first], self.y[:first]), Samples(self.x[first:], self.y[first:])


@dataclass(frozen=True, slots=True)
class Points:
    """All that the windows of one run show."""

    instances: Mapping[str, Samples]  # by operator: rows/s into an instance -> cores that it uses (OCUP)
    nodes: Samples  # cores of the instances on a node -> cores that the node uses (OP)
    selectivity: Mapping[tuple[str, str], Floats]  # by stream: rows on it / rows into its operator (SP)
    windows: int = 0  # that were used
    cold: int = 0  # that were left out, because their JVMs were starting


@dataclass(slots=True)
class _Collected:
    instances: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    nodes: list[tuple[float, float]] = field(default_factory=list)
    selectivity: dict[tuple[str, str], list[float]] = field(default_factory=dict)


def points(windows: Iterable[Observation]) -> Points:
    """Collect the points of windows, oldest first; those of cold JVMs and repeated ones are left out.

    Instances and nodes count as the mean one: P2's own figures add the instances of an operator up, too.
    """
    collected, used, cold = _Collected(), 0, 0
    for window in windows:
        if window.application.stale or window.seconds <= 0:
            continue
        if any((node.compiling or 0.0) > COLD for node in window.nodes):
            cold += 1
            continue
        used += 1
        _add_operators(window, collected)
        _add_node(window, collected)
    return Points(
        {name: _samples(pairs) for name, pairs in collected.instances.items()},
        _samples(collected.nodes),
        {stream: np.array(values) for stream, values in collected.selectivity.items()},
        used,
        cold,
    )


def together(parts: Sequence[Points]) -> Points:
    """The points of several runs, one run after the other."""

    def join(samples: Iterable[Samples]) -> Samples:
        each = list(samples)
        return Samples(np.concatenate([s.x for s in each]), np.concatenate([s.y for s in each]))

    names = list(dict.fromkeys(name for part in parts for name in part.instances))
    streams = list(dict.fromkeys(stream for part in parts for stream in part.selectivity))
    return Points(
        {name: join(p.instances[name] for p in parts if name in p.instances) for name in names},
        join(part.nodes for part in parts),
        {s: np.concatenate([p.selectivity[s] for p in parts if s in p.selectivity]) for s in streams},
        sum(part.windows for part in parts),
        sum(part.cold for part in parts),
    )


def divided(whole: Points, share: float) -> tuple[Points, Points]:
    """The first windows, to learn from, and the last ones by their share, to judge what was learned."""

    def part(choose: Callable[[tuple[Samples, Samples]], Samples]) -> Points:
        return Points(
            {name: choose(samples.split(share)) for name, samples in whole.instances.items()},
            choose(whole.nodes.split(share)),
            whole.selectivity,
            whole.windows,
            whole.cold,
        )

    return part(lambda halves: halves[0]), part(lambda halves: halves[1])


def _add_operators(window: Observation, collected: _Collected) -> None:
    for name, measures in window.operators.items():
        for downstream, rows in measures.emitted.items():
            if measures.processed:
                ratio = rows / measures.processed
                collected.selectivity.setdefault((name, downstream), []).append(ratio)
        if measures.processed and measures.cpu_seconds and measures.parallelism:
            shared = measures.parallelism * window.seconds
            point = measures.processed / shared, measures.cpu_seconds / shared
            collected.instances.setdefault(name, []).append(point)


def _add_node(window: Observation, collected: _Collected) -> None:
    """The mean node; a window in which a part was not measured says nothing of it."""
    used = [measures.cpu_seconds for measures in window.operators.values()]
    busy = [node.cpu * node.cores for node in window.nodes if node.cpu is not None]
    if busy and len(busy) == len(window.nodes) and None not in used:
        inside = sum(seconds for seconds in used if seconds is not None) / window.seconds
        collected.nodes.append((inside / len(busy), sum(busy) / len(busy)))


def _samples(pairs: Sequence[tuple[float, float]]) -> Samples:
    both = np.array(pairs, dtype=np.float64).reshape(-1, 2)
    return Samples(both[:, 0], both[:, 1])
