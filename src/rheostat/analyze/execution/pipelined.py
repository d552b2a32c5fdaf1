"""Models in which every operator runs all the time, with a slot or thread for each instance."""

from collections.abc import Mapping
from dataclasses import dataclass

from rheostat.analyze.execution.questions import ExecutionModel, ceil
from rheostat.model.observation import OperatorMeasures


class AllAtOnce(ExecutionModel):
    """What both models share: each operator has instances of its own, whatever the others do."""

    def utilisation(
        self, busy: Mapping[str, float], parallelism: Mapping[str, int], slots: int
    ) -> dict[str, float]:
        return {name: work / parallelism[name] for name, work in busy.items()}

    def parallelism_for(self, busy: Mapping[str, float], target: float) -> dict[str, int]:
        return {name: max(1, ceil(work / target)) for name, work in busy.items()}

    def slots_for(self, parallelism: Mapping[str, int]) -> int:
        return sum(parallelism.values())


@dataclass(frozen=True)
class Pipelined(AllAtOnce):
    """Real-Time Mode: every instance holds a slot, all operators run concurrently (the papers' model).

    >>> Pipelined().parallelism_for({"split": 1.5, "count": 0.2}, target=0.8)
    {'split': 2, 'count': 1}

    There are two limits: an instance uses at most one core, and a node at most its cores. Slots may
    outnumber cores, so that instances and nodes are chosen apart (ELYSIUM's symbiosis, P2).

    >>> Pipelined().instance_cores(4.0, 16), Pipelined().instance_cores(0.5, 2)
    (1.0, 0.5)

    Reserved slots hold tasks that no policy scales, such as the readers of topics inside a graph.

    >>> Pipelined(reserved=2).slots_for({"split": 2, "count": 1})
    5
    """

    reserved: int = 0
    name = "pipelined"
    cores_apart = True

    def slots_for(self, parallelism: Mapping[str, int]) -> int:
        return super().slots_for(parallelism) + self.reserved

    def slots_required(self, parallelism: Mapping[str, int]) -> int:
        return self.slots_for(parallelism)

    def instance_cores(self, node_cores: float, node_slots: int) -> float:
        return min(1.0, node_cores)

    def slot_seconds(self, measures: OperatorMeasures, by_cpu: float) -> float:
        """A row holds its instance also while the operator waits, as for a remote service (P3, eq. 4)."""
        if not measures.row_busy_seconds or not measures.processed:
            return by_cpu
        return max(by_cpu, measures.row_busy_seconds / measures.processed)


@dataclass(frozen=True)
class Storm(AllAtOnce):
    """Storm's own mode: a queue before each operator, and threads that may share a core.

    A thread counts on a slot's share of its node, as in the papers: their nodes have no more slots than that.

    >>> Storm().slots_required({"split": 2, "count": 1})
    0
    """

    name = "storm"
    oversubscribes = True
    has_queues = True
