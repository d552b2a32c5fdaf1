"""Micro-batch in which no operator can change, as in most plain scripts: a policy chooses only nodes."""

from collections.abc import Mapping
from dataclasses import dataclass

from rheostat.analyze.execution.staged import Staged


@dataclass(frozen=True)
class FixedTasks(Staged):
    """Every operator is pinned, and its tasks run in waves on the available slots.

    A policy chooses how many slots the tasks can use. Slots come in whole nodes, and more slots than tasks
    can help, because a task that has a node to itself runs faster.

    >>> fixed = FixedTasks(10, 0.0, pinned={"a": 4, "b": 200}, node_slots=2)
    >>> fixed.parallelism_for({"a": 2.0, "b": 1.5}, target=0.8)
    {'a': 6, 'b': 6}
    >>> fixed.slots_for({"a": 4, "b": 5}), fixed.step
    (6, 2)
    """

    scales_nodes_only = True

    @property
    def step(self) -> int:
        return max(1, self.node_slots)

    def utilisation(
        self, busy: Mapping[str, float], parallelism: Mapping[str, int], slots: int
    ) -> dict[str, float]:
        return super().utilisation(busy, self.pinned, slots)  # all tasks run, in however many waves

    def batch_seconds(
        self,
        busy: Mapping[str, float],
        parallelism: Mapping[str, int],
        slots: int,
        partitions: Mapping[str, int] = {},
    ) -> float:
        return super().batch_seconds(busy, self.pinned, slots, partitions)

    def parallelism_for(self, busy: Mapping[str, float], target: float) -> dict[str, int]:
        return dict.fromkeys(busy, self.whole_steps(self._slots_needed(busy, target)))

    def slots_for(self, parallelism: Mapping[str, int]) -> int:
        return self.whole_steps(max(parallelism.values()))
