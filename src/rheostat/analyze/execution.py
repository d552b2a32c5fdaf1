"""The execution models: how instances share slots, and so what parallelism is worth.

A policy asks the model; it does not assume one. `busy` is the number of slots an operator keeps busy:
demand × seconds that one row occupies a slot.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

MODES = ("pipelined", "staged", "storm")
_SLACK = 1e-9  # ceil(3.0000000001) is 3 for our purposes
_GAIN = 0.2  # of the pinned operators' time: no slots are asked for to save less than that on the others


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
    waves: bool = False  # whether no operator can change: a policy counts the nodes on which its tasks run

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
    few: it asks for none of its own. Where they are many, it leaves some idle, and the others need more.

    >>> Staged(pinned={"b": 8}).slots_for({"a": 3, "b": 8})
    3
    >>> Staged(10, 0.0, pinned={"b": 2}).parallelism_for({"a": 2.0, "b": 1.0}, target=0.8)
    {'a': 7, 'b': 2}

    On a node with fewer cores than slots a task runs faster alone. So 4 tasks are worth 8 slots on four nodes
    of two slots and one core, but 4 on three: two share a node, and a stage ends with its last task.

    >>> shared = Staged(10, 0.0, node_slots=2, alone=2.0)
    >>> [shared.utilisation({"a": 4.0}, {"a": 4}, slots)["a"] for slots in (8, 6, 4, 2)]
    [0.5, 1.0, 1.0, 2.0]

    Where every operator is pinned, nodes are all there is to choose, and a parallelism counts them.

    >>> fixed = Staged(10, 0.0, pinned={"a": 4, "b": 200}, node_slots=2, waves=True)
    >>> fixed.parallelism_for({"a": 2.0, "b": 2.0}, target=0.8)
    {'a': 4, 'b': 4}

    The queries of a graph share the slots, but their overheads pass at the same time.

    >>> apart = Staged(10, 1.0, queries=(frozenset({"a", "b"}), frozenset({"c"})))
    >>> apart.utilisation({"a": 0.5, "b": 0.5, "c": 1.0}, {"a": 4, "b": 4, "c": 4}, slots=4)
    {'a': 0.7, 'b': 0.7, 'c': 0.7}

    A query to which no rows come runs no batch.

    >>> apart.utilisation({"a": 0.0, "b": 0.0, "c": 1.0}, {"a": 4, "b": 4, "c": 4}, slots=4)
    {'a': 0.35, 'b': 0.35, 'c': 0.35}
    """

    trigger_seconds: float = 10.0
    stage_overhead_seconds: float = 0.1
    pinned: Mapping[str, int] = field(default_factory=dict)
    queries: tuple[frozenset[str], ...] = ()  # none: all operators are one query
    node_slots: int = 0  # of every node; 0: tasks get slots wherever they are
    alone: float = 1.0  # by how much a task outruns its slot when it has a node to itself
    waves: bool = False
    name = "staged"

    def utilisation(
        self, busy: Mapping[str, float], parallelism: Mapping[str, int], slots: int
    ) -> dict[str, float]:
        tasks = self.pinned if self.waves else parallelism
        work = sum(work / self._worth(tasks[name], slots) for name, work in busy.items())
        return dict.fromkeys(busy, work + self._overhead(busy))

    def parallelism_for(self, busy: Mapping[str, float], target: float) -> dict[str, int]:
        room = target - self._overhead(busy)
        if room <= 0:  # the overheads alone fill the interval: more slots cannot help
            return dict.fromkeys(busy, 1)
        fixed = {name: tasks for name, tasks in self.pinned.items() if name in busy}
        free = sum(work for name, work in busy.items() if name not in fixed)
        least = self._held(fixed, busy, max(map(self._useful, fixed.values()), default=0))
        room = max(room, least * (1 + _GAIN))
        count = max(1, ceil(sum(busy.values()) / room))
        while free / count + self._held(fixed, busy, count) > room + _SLACK:
            count += 1
        if self.waves:
            return dict.fromkeys(busy, ceil(count / self.node_slots))
        return {**dict.fromkeys(busy, count), **fixed}

    def slots_for(self, parallelism: Mapping[str, int]) -> int:
        if self.waves:
            return max(parallelism.values()) * self.node_slots
        return max([count for name, count in parallelism.items() if name not in self.pinned] or [1])

    def _held(self, fixed: Mapping[str, int], busy: Mapping[str, float], count: int) -> float:
        """The part of the interval that the pinned stages take on the nodes for so many slots."""
        slots = ceil(count / self.node_slots) * self.node_slots if self.node_slots else count
        return sum(busy[name] / self._worth(tasks, slots) for name, tasks in fixed.items())

    def _useful(self, tasks: int) -> int:
        """The slots beyond which so many tasks gain nothing."""
        if not self.node_slots:
            return tasks
        return self.node_slots * ceil(tasks / max(1, int(self.node_slots / self.alone)))

    def _worth(self, tasks: int, slots: int) -> float:
        """The slots' worth of CPU that so many tasks of a stage get, if they are spread evenly."""
        tasks, slots = max(1, tasks), max(1, slots)
        if not self.node_slots:
            return min(tasks, slots)
        together = ceil(tasks / max(1, slots // self.node_slots))
        return min(slots, tasks * min(self.alone, self.node_slots / together))

    def _overhead(self, busy: Mapping[str, float]) -> float:
        """The part of the interval that the stages of the longest query take whatever their rows."""
        queries = [query & busy.keys() for query in self.queries or (busy.keys(),)]
        longest = max((len(query) for query in queries if any(busy[name] for name in query)), default=0)
        return longest * self.stage_overhead_seconds / self.trigger_seconds
