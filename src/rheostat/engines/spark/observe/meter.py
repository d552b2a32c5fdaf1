"""Measures what the nodes use: by their control groups where they are ours, else by what executors tell."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from rheostat.control.ports import Provider
from rheostat.engines.spark.protocol import Executor, Vitals

Hosted = Mapping[str, Sequence[Executor]]  # the executors on each node


@dataclass(frozen=True, slots=True)
class NodeUse:
    """What a node used since the last reading; None: not known."""

    cores: float | None = None
    memory_bytes: float | None = None
    gc: float | None = None  # the share of the time in which its busiest executor collected garbage
    compiling: float | None = None  # the part of its executors' CPU that compilers and class loading took
    heap: float | None = None  # that the latest collection left in its fullest executor / the limit


class Meter:
    """Measures the nodes between its readings; each reader needs its own meter."""

    def __init__(self, provider: Provider, hosted: Callable[[], Hosted]) -> None:
        self._provider, self._hosted = provider, hosted
        self._before: dict[str, tuple[float, float]] = {}  # node -> (at, CPU seconds)
        self._told: dict[str, Vitals] = {}  # executor -> what it told by the last reading

    def look(self) -> None:
        """See executors that are new, so that the next reading knows what they used since."""
        for executor in chain.from_iterable(self._hosted().values()):
            if executor.vitals is not None:
                self._told.setdefault(executor.id, executor.vitals)

    def read(self, now: float) -> dict[str, NodeUse]:
        """What each node used since the last reading."""
        hosted = self._hosted()
        told, self._told = self._told, {}
        readings = {}
        for name in (node.name for node in self._provider.nodes()):
            executors = hosted.get(name, ())
            spans = [(told.get(executor.id), executor.vitals) for executor in executors]
            self._told |= {executor.id: executor.vitals for executor in executors if executor.vitals}
            readings[name] = self._by_provider(name, now, _by_executors(spans))
        return readings

    def _by_provider(self, name: str, now: float, told: NodeUse) -> NodeUse:
        """What executors tell; CPU and memory of the whole node where it is ours."""
        used = self._provider.usage(name)
        if used is None:
            return told
        at, before = self._before.get(name, (now, used.cpu_seconds))
        self._before[name] = (now, used.cpu_seconds)
        cores = (used.cpu_seconds - before) / (now - at) if now > at else None
        return replace(told, cores=cores, memory_bytes=used.memory_bytes)


def _by_executors(spans: Sequence[tuple[Vitals | None, Vitals | None]]) -> NodeUse:
    """What a node's executors used, each between two moments; the sum only if all of them tell.

    >>> before, after = Vitals(0, 0.0, 0.4, 1.0, 1.0, 0.5, 7e8), Vitals(2000, 0.5, 0.9, 3.0, 2.5, 1.0, 8e8)
    >>> spans = [(before, after)]
    >>> _by_executors(spans)
    NodeUse(cores=1.0, memory_bytes=800000000.0, gc=0.25, compiling=1.0, heap=0.9)
    >>> _by_executors([*spans, (None, None)])
    NodeUse(cores=None, memory_bytes=None, gc=0.25, compiling=1.0, heap=0.9)
    """
    now = [after for _, after in spans if after is not None]
    known = [(before, after) for before, after in spans if before and after and after.at > before.at]
    cpu = [_spent(before.cpu_seconds, after.cpu_seconds) for before, after in known]
    compiled = [_prepared(before, after) for before, after in known]
    gc = [1000 * (_spent(b.gc_seconds, a.gc_seconds) or 0.0) / (a.at - b.at) for b, a in known]
    cores = [
        None if spent is None else 1000 * spent / (after.at - before.at)
        for spent, (before, after) in zip(cpu, known, strict=True)
    ]
    return NodeUse(
        cores=_sum(cores) if len(cores) == len(spans) else None,
        memory_bytes=_sum([each.memory_bytes for each in now]) if len(now) == len(spans) else None,
        gc=max(gc, default=None),
        compiling=_part(_sum(compiled), _sum(cpu)),
        heap=max((each.heap for each in now if each.heap is not None), default=None),
    )


def _prepared(before: Vitals, after: Vitals) -> float | None:
    """For how long it compiled and loaded classes; a JVM may not tell the latter."""
    compiled = _spent(before.compile_seconds, after.compile_seconds)
    return None if compiled is None else compiled + (_spent(before.load_seconds, after.load_seconds) or 0.0)


def _spent(before: float | None, after: float | None) -> float | None:
    """Worker processes that nobody waited for take their times with them."""
    return None if before is None or after is None else max(0.0, after - before)


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


def _part(some: float | None, whole: float | None) -> float | None:
    return None if some is None or not whole else min(1.0, some / whole)
