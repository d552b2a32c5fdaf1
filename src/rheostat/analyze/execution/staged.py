"""Micro-batch: the stages of a query take turns on all slots."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf

from rheostat.analyze.execution.questions import ExecutionModel, ceil
from rheostat.model.observation import Observation, OperatorMeasures

_SLACK = 1e-9
_GAIN = 0.2  # of the pinned operators' time: no slots are requested to save less than this on the others


@dataclass(frozen=True)
class Staged(ExecutionModel):
    """Micro-batch: the stages take turns on all slots, so slots are what a policy really chooses.

    >>> Staged(10, stage_overhead_seconds=0.5).parallelism_for({"a": 1.5, "b": 0.2}, target=0.8)
    {'a': 3, 'b': 3}

    An operator that is pinned, because its bounds allow only one parallelism, runs in waves if there are few
    slots: it requests none itself. If there are many, it leaves some idle, and the others need more.

    >>> Staged(pinned={"b": 8}).slots_for({"a": 3, "b": 8})
    3
    >>> Staged(10, 0.0, pinned={"b": 2}).parallelism_for({"a": 2.0, "b": 1.0}, target=0.8)
    {'a': 7, 'b': 2}

    On a node with fewer cores than slots a task runs faster alone. So 4 tasks are worth 8 slots on four nodes
    of two slots and one core, but 4 on three: two share a node, and a stage ends with its last task.

    >>> shared = Staged(10, 0.0, node_slots=2, alone=2.0)
    >>> [shared.utilisation({"a": 4.0}, {"a": 4}, slots)["a"] for slots in (8, 6, 4, 2)]
    [0.5, 1.0, 1.0, 2.0]

    What an operator waits itself, as for a remote service, passes no faster where its task is alone.

    >>> asking = Staged(10, 0.0, node_slots=2, alone=2.0, waits={"a": 0.5})
    >>> [asking.utilisation({"a": 1.0}, {"a": tasks}, slots=2)["a"] for tasks in (1, 2)]
    [0.75, 0.5]

    The queries of a graph share the slots, but their overheads run concurrently.

    >>> apart = Staged(10, 1.0, queries=(frozenset({"a", "b"}), frozenset({"c"})))
    >>> apart.utilisation({"a": 0.5, "b": 0.5, "c": 1.0}, {"a": 4, "b": 4, "c": 4}, slots=4)
    {'a': 0.7, 'b': 0.7, 'c': 0.7}

    A stateful operator pays for each partition of its state, with rows or without, in waves on the slots.

    >>> counts = Staged(10, 0.0, {"b": 200}, partition_seconds={"b": 0.1})
    >>> [counts.utilisation({"a": 0.4, "b": 0.4}, {"a": 4, "b": 200}, slots)["b"] for slots in (2, 4)]
    [1.4, 0.7]
    >>> [counts.batch_seconds({"a": 0.4, "b": 0.4}, {"a": 4}, 4, {"b": count}) for count in (200, 16, 4)]
    [7.0, 2.4, 2.1]
    >>> counts.parallelism_for({"a": 0.4, "b": 0.4}, target=0.8)
    {'a': 4, 'b': 200}

    A query that receives no rows runs no batch.

    >>> apart.utilisation({"a": 0.0, "b": 0.0, "c": 1.0}, {"a": 4, "b": 4, "c": 4}, slots=4)
    {'a': 0.35, 'b': 0.35, 'c': 0.35}
    """

    trigger_seconds: float = 10.0
    stage_overhead_seconds: float = 0.1
    pinned: Mapping[str, int] = field(default_factory=dict)
    queries: tuple[frozenset[str], ...] = ()  # empty: all operators form one query
    node_slots: int = 0  # per node; 0: it does not matter which node a slot is on
    alone: float = 1.0  # speed-up of a task that has a node to itself
    partition_seconds: Mapping[str, float] = field(default_factory=dict)  # of a slot, per stateful operator
    waits: Mapping[str, float] = field(default_factory=dict)  # share of the slot time in which it waits
    name = "staged"
    takes_turns = True

    def utilisation(
        self, busy: Mapping[str, float], parallelism: Mapping[str, int], slots: int
    ) -> dict[str, float]:
        work, fixed = self._work(busy, parallelism, slots), self._regardless(busy, parallelism, slots)
        return dict.fromkeys(busy, work + fixed)

    def batch_seconds(
        self,
        busy: Mapping[str, float],
        parallelism: Mapping[str, int],
        slots: int,
        partitions: Mapping[str, int] = {},
    ) -> float:
        """How long batches would take with these state partitions; where none are given, with those that are.

        A batch that takes longer than the interval between triggers finds the rows of all that time.

        >>> [Staged(10, 1.0).batch_seconds({"a": busy}, {"a": 1}, 1) for busy in (0.8, 0.95, 1.0)]
        [9.0, 20.0, inf]
        """
        counts = {**dict.fromkeys(busy, slots), **self.pinned, **parallelism, **partitions}
        work = self._work(busy, counts, slots)
        fixed = self._regardless(busy, counts, slots)
        if work + fixed <= 1:
            return round((work + fixed) * self.trigger_seconds, 9)
        return round(fixed / (1 - work) * self.trigger_seconds, 9) if work < 1 - _SLACK else inf

    def parallelism_for(self, busy: Mapping[str, float], target: float) -> dict[str, int]:
        if target <= self._overhead(busy):
            return dict.fromkeys(busy, 1)
        return {**dict.fromkeys(busy, self._slots_needed(busy, target)), **self._fixed(busy)}

    def slots_for(self, parallelism: Mapping[str, int]) -> int:
        return max([count for name, count in parallelism.items() if name not in self.pinned] or [1])

    def most_slots(self, parallelism: Mapping[str, int]) -> int:
        most = {name: self._max_useful_slots(tasks) for name, tasks in parallelism.items()}
        queries = [query & most.keys() for query in self.queries or (most.keys(),)]
        return sum(max((most[name] for name in query), default=0) for query in queries)

    def useful(self, instances: int, slots: int) -> int:
        return min(instances, slots)

    def filling(self, parallelism: Mapping[str, int], slots: int) -> dict[str, int]:
        return {name: max(count, slots) for name, count in parallelism.items()}

    def slot_seconds(self, measures: OperatorMeasures, by_cpu: float) -> float:
        """The time its tasks took: a batch waits for them, and their CPU time leaves out garbage collection.

        But tasks that ran faster because they were alone on their nodes will need more slot time elsewhere.
        """
        if not measures.row_busy_seconds or not measures.processed:
            return by_cpu
        held = measures.row_busy_seconds / measures.processed
        return max(held, by_cpu) if self.alone > 1 else held

    def measured_load(self, observation: Observation, sources: Iterable[str]) -> float:
        """The load at which one batch per trigger is as large as this window's batches were.

        A small batch may follow one that took too long, and there the fixed cost of a batch weighs more on
        each row: used as the cost at the present load, it would double the nodes.
        """
        load, measured = super().measured_load(observation, sources), observation.application
        if len(self.queries) > 1 or not measured.batches or not measured.trigger_seconds:
            return load
        rows = sum(observation.operators[name].processed or 0.0 for name in sources)
        return rows / measured.batches / measured.trigger_seconds or load

    def _slots_needed(self, busy: Mapping[str, float], target: float) -> int:
        """The fewest slots on which the stages take no more than the target share of the interval."""
        room = target - self._overhead(busy)
        if room <= 0:  # the overheads alone fill the interval: more slots cannot help
            return 1
        fixed = self._fixed(busy)
        free = sum(work for name, work in busy.items() if name not in fixed)
        min_held = self._held(
            fixed, busy, max(map(self._max_useful_slots, fixed.values()), default=self.node_slots or 1)
        )
        room = max(room, min_held * (1 + _GAIN))
        count = max(1, ceil(sum(busy.values()) / room))
        while free / count + self._held(fixed, busy, count) > room + _SLACK:
            count += 1
        return count

    def _fixed(self, busy: Mapping[str, float]) -> dict[str, int]:
        return {name: tasks for name, tasks in self.pinned.items() if name in busy}

    def _held(self, fixed: Mapping[str, int], busy: Mapping[str, float], count: int) -> float:
        """The share of the interval that the pinned stages take on enough nodes for this many slots."""
        slots = ceil(count / self.node_slots) * self.node_slots if self.node_slots else count
        held = self._work({name: busy[name] for name in fixed}, fixed, slots)
        return held + self._state(busy, {**dict.fromkeys(busy, count), **fixed}, slots)

    def _max_useful_slots(self, tasks: int) -> int:
        """The number of slots above which this many tasks gain nothing."""
        if not self.node_slots:
            return tasks
        return self.node_slots * ceil(tasks / max(1, int(self.node_slots / self.alone)))

    def _worth(self, tasks: int, slots: int) -> float:
        """The CPU, in slots, that this many tasks of a stage get if they are spread evenly."""
        tasks, slots = max(1, tasks), max(1, slots)
        if not self.node_slots:
            return min(tasks, slots)
        together = ceil(tasks / max(1, slots // self.node_slots))
        return min(slots, tasks * min(self.alone, self.node_slots / together))

    def _work(self, busy: Mapping[str, float], parallelism: Mapping[str, int], slots: int) -> float:
        """The share of the interval that the rows take."""
        return sum(self._spread(name, work, parallelism[name], slots) for name, work in busy.items())

    def _spread(self, name: str, work: float, tasks: int, slots: int) -> float:
        """The share of the interval that an operator's work takes in so many tasks."""
        waits = work * self.waits.get(name, 0.0)
        return (work - waits) / self._worth(tasks, slots) + waits / max(1, min(tasks, slots))

    def _regardless(self, busy: Mapping[str, float], parallelism: Mapping[str, int], slots: int) -> float:
        """The share of the interval that a batch takes however many rows it has."""
        return self._overhead(busy) + self._state(busy, parallelism, slots)

    def _state(self, busy: Mapping[str, float], parallelism: Mapping[str, int], slots: int) -> float:
        """The share of the interval that state partitions take in the queries that receive rows."""
        costs = {name: cost for name, cost in self.partition_seconds.items() if name in busy}
        if not costs:
            return 0.0
        queries = self.queries or (frozenset(busy),)
        active = {name for query in queries if any(busy.get(name) for name in query) for name in query}
        waves = {name: self._waves(parallelism[name], slots) for name in costs.keys() & active}
        return sum(costs[name] * count for name, count in waves.items()) / self.trigger_seconds

    def _waves(self, tasks: int, slots: int) -> float:
        """How often as long as one task, in full company, the tasks of a stage take on these slots.

        >>> [Staged()._waves(tasks, 4) for tasks in (3, 4, 5, 200)]
        [1, 1, 2, 50]
        >>> [Staged(node_slots=2, alone=2.0)._waves(tasks, 4) for tasks in (2, 3, 5)]  # two nodes
        [0.5, 1, 1.5]
        """
        slots = max(1, slots)
        if not self.node_slots:
            return ceil(tasks / slots)
        full, rest = divmod(ceil(tasks / max(1, slots // self.node_slots)), min(slots, self.node_slots))
        return full + (1 / min(self.alone, self.node_slots / rest) if rest else 0)

    def _overhead(self, busy: Mapping[str, float]) -> float:
        """The share of the interval that the longest query's stages take, however many rows they have."""
        queries = [query & busy.keys() for query in self.queries or (busy.keys(),)]
        longest = max((len(query) for query in queries if any(busy[name] for name in query)), default=0)
        return longest * self.stage_overhead_seconds / self.trigger_seconds
