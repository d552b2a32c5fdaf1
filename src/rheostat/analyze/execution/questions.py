"""The questions that every execution model answers; most have an answer that holds unless a model differs."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping

from rheostat.model.observation import Observation, OperatorMeasures

_SLACK = 1e-9  # ceil(3.0000000001) is 3 for our purposes


def ceil(value: float) -> int:
    """Round up, forgiving floating-point dust.

    >>> ceil(0.1 * 3 / 0.1), ceil(3.01)
    (3, 4)
    """
    return math.ceil(value - _SLACK)


class ExecutionModel(ABC):
    """How an engine runs a topology. A parallelism is always a number of instances, never of nodes."""

    name: str  # for people; a program asks one of the questions below
    oversubscribes: bool = False  # whether a node may host more instances than it has slots
    takes_turns: bool = False  # whether operators take turns on all slots; else every instance has its place
    has_queues: bool = False  # whether a queue of rows stands before every operator
    scales_nodes_only: bool = False  # whether no operator can change, so that only nodes are to choose
    trigger_seconds: float | None = None  # the interval between batches; None: rows flow one by one

    @property
    def step(self) -> int:
        """The least number of instances by which a change of parallelism makes a difference."""
        return 1

    def whole_steps(self, instances: int) -> int:
        """A number of instances, rounded up to one that makes a difference."""
        return ceil(instances / self.step) * self.step

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

    def slots_required(self, parallelism: Mapping[str, int]) -> int:
        """The slots without which this parallelism cannot run at all; 0 where any number will do."""
        return 0

    def useful(self, instances: int, slots: int) -> int:
        """How many of an operator's instances find work to do on so many slots."""
        return instances

    def filling(self, parallelism: Mapping[str, int], slots: int) -> dict[str, int]:
        """The parallelism raised until no slot is wasted, where that takes nothing from other operators."""
        return dict(parallelism)

    def slot_seconds(self, measures: OperatorMeasures, by_cpu: float) -> float:
        """How long a row holds a slot, given the time that its CPU alone takes there."""
        return by_cpu

    def measured_load(self, observation: Observation, sources: Iterable[str]) -> float:
        """The load to which this window's costs belong, in rows/s at all sources."""
        return observation.total_load or 0.0
