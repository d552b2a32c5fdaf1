"""The execution models: how instances share slots, and so what parallelism is worth.

A policy asks the model; it does not assume one. `busy` is the number of slots an operator keeps busy:
demand × seconds that one row occupies a slot.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

MODES = ("pipelined", "staged", "storm")
_SLACK = 1e-9  # ceil(3.0000000001) is 3 for our purposes


def ceil(value: float) -> int:
    """Round up, forgiving floating-point dust.

    >>> ceil(0.1 * 3 / 0.1), ceil(3.01)
    (3, 4)
    """
    return math.ceil(value - _SLACK)


class ExecutionModel(ABC):
    """What a policy may ask about the way an engine runs a topology."""

    name: str
    oversubscribes: bool = False  # whether a node may host more instances than it has slots

    @abstractmethod
    def utilisation(
        self, busy: Mapping[str, float], parallelism: Mapping[str, int], slots: int
    ) -> dict[str, float]:
        """How much of its capacity each operator needs; above 1 the application falls behind."""

    @abstractmethod
    def parallelism_for(self, busy: Mapping[str, float], target: float) -> dict[str, int]:
        """The smallest parallelism that keeps every operator's utilisation at or below the target."""

    @abstractmethod
    def slots_for(self, parallelism: Mapping[str, int]) -> int:
        """The slots that this parallelism can use at once."""


@dataclass(frozen=True)
class Pipelined(ExecutionModel):
    """Real-Time Mode: every instance holds a slot for good, all operators run at once (the papers' model).

    >>> Pipelined().parallelism_for({"split": 1.5, "count": 0.2}, target=0.8)
    {'split': 2, 'count': 1}

    Slots that are reserved hold something that no policy sees, such as the readers of topics inside a graph.

    >>> Pipelined(reserved=2).slots_for({"split": 2, "count": 1})
    5
    """

    reserved: int = 0
    name = "pipelined"

    def utilisation(
        self, busy: Mapping[str, float], parallelism: Mapping[str, int], slots: int
    ) -> dict[str, float]:
        return {name: work / parallelism[name] for name, work in busy.items()}

    def parallelism_for(self, busy: Mapping[str, float], target: float) -> dict[str, int]:
        return {name: max(1, ceil(work / target)) for name, work in busy.items()}

    def slots_for(self, parallelism: Mapping[str, int]) -> int:
        return sum(parallelism.values()) + self.reserved


@dataclass(frozen=True)
class Storm(Pipelined):
    """Storm's own mode: as pipelined, with a queue before each operator and threads that may share a core."""

    name = "storm"
    oversubscribes = True


@dataclass(frozen=True)
class Staged(ExecutionModel):
    """Micro-batch: the stages take turns on all slots, so slots are what a policy really chooses.

    >>> Staged(10, stage_overhead_seconds=0.5).parallelism_for({"a": 1.5, "b": 0.2}, target=0.8)
    {'a': 3, 'b': 3}

    An operator that is pinned, because its bounds leave it one parallelism, runs in waves where slots are
    few: it asks for none of its own.

    >>> Staged(pinned=frozenset({"b"})).slots_for({"a": 3, "b": 8})
    3

    The queries of a graph share the slots, but their overheads pass at the same time.

    >>> apart = Staged(10, 1.0, queries=(frozenset({"a", "b"}), frozenset({"c"})))
    >>> apart.utilisation({"a": 0.5, "b": 0.5, "c": 1.0}, {"a": 4, "b": 4, "c": 4}, slots=4)
    {'a': 0.7, 'b': 0.7, 'c': 0.7}
    """

    trigger_seconds: float = 10.0
    stage_overhead_seconds: float = 0.1
    pinned: frozenset[str] = frozenset()
    queries: tuple[frozenset[str], ...] = ()  # none: all operators are one query
    name = "staged"

    def utilisation(
        self, busy: Mapping[str, float], parallelism: Mapping[str, int], slots: int
    ) -> dict[str, float]:
        work = sum(work / max(1, min(parallelism[name], slots)) for name, work in busy.items())
        return dict.fromkeys(busy, work + self._overhead(busy))

    def parallelism_for(self, busy: Mapping[str, float], target: float) -> dict[str, int]:
        room = target - self._overhead(busy)
        if room <= 0:  # the overheads alone fill the interval: more slots cannot help
            return dict.fromkeys(busy, 1)
        return dict.fromkeys(busy, max(1, ceil(sum(busy.values()) / room)))

    def slots_for(self, parallelism: Mapping[str, int]) -> int:
        return max([count for name, count in parallelism.items() if name not in self.pinned] or [1])

    def _overhead(self, busy: Mapping[str, float]) -> float:
        """The part of the interval that the stages of the longest query take whatever their rows."""
        longest = max((len(query & busy.keys()) for query in self.queries), default=len(busy))
        return longest * self.stage_overhead_seconds / self.trigger_seconds
