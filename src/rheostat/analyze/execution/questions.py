"""The questions that every execution model answers; most have a default answer."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping

from rheostat.model.observation import Observation, OperatorMeasures

_SLACK = 1e-9  # ceil(3.0000000001) is 3 for our purposes


def ceil(value: float) -> int:
    """Round up, ignoring floating-point errors.

    >>> ceil(0.1 * 3 / 0.1), ceil(3.01)
    (3, 4)
    """
    return math.ceil(value - _SLACK)


class ExecutionModel(ABC):
    """How an engine runs a topology. A parallelism is always a number of instances, never of nodes."""

    name: str  # for display; programs ask the questions below
    oversubscribes: bool = False  # whether a node may host more instances than it has slots
    takes_turns: bool = False  # whether operators take turns on all slots; if not, each instance has its own
    has_queues: bool = False  # whether every operator has a queue of rows
    scales_nodes_only: bool = False  # whether no operator can change, so that a policy chooses only nodes
    cores_apart: bool = False  # whether nodes run out of CPU apart from slots, which may outnumber cores
    trigger_seconds: float | None = None  # the interval between batches; None: rows flow one by one

    @property
    def step(self) -> int:
        """The smallest change of parallelism, in instances, that makes a difference."""
        return 1

    def whole_steps(self, instances: int) -> int:
        """A number of instances, rounded up to a multiple of the step."""
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
        """The slots that this parallelism can use at the same time."""

    def slots_required(self, parallelism: Mapping[str, int]) -> int:
        """The slots without which this parallelism cannot run at all; 0 if any number is enough."""
        return 0

    def most_slots(self, parallelism: Mapping[str, int]) -> int:
        """The slots beyond which this parallelism gains nothing."""
        return self.slots_for(parallelism)

    def batch_seconds(
        self,
        busy: Mapping[str, float],
        parallelism: Mapping[str, int],
        slots: int,
        partitions: Mapping[str, int] = {},
    ) -> float | None:
        """How long batches would take with other numbers of state partitions; None: there are no batches."""
        return None

    def useful(self, instances: int, slots: int) -> int:
        """How many of an operator's instances can work at the same time on this many slots."""
        return instances

    def filling(self, parallelism: Mapping[str, int], slots: int) -> dict[str, int]:
        """The parallelism, raised until no slot is idle, if that takes nothing from other operators."""
        return dict(parallelism)

    def instance_cores(self, node_cores: float, node_slots: int) -> float:
        """The most CPU that one instance can count on, on a node of this size."""
        return node_cores / node_slots

    def slot_seconds(self, measures: OperatorMeasures, by_cpu: float) -> float:
        """How long a row holds a slot, given the time that its CPU work alone takes there."""
        return by_cpu

    def measured_load(self, observation: Observation, sources: Iterable[str]) -> float:
        """The load at which this window's costs were measured, in rows/s at all sources."""
        return observation.total_load or 0.0
