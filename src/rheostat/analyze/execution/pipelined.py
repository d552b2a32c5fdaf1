"""Models in which every operator runs all the time, with a slot or thread for each instance."""

from collections.abc import Mapping
from dataclasses import dataclass

from rheostat.analyze.execution.questions import ExecutionModel, ceil


@dataclass(frozen=True)
class Pipelined(ExecutionModel):
    """Real-Time Mode: every instance holds a slot, all operators run concurrently (the papers' model).

    >>> Pipelined().parallelism_for({"split": 1.5, "count": 0.2}, target=0.8)
    {'split': 2, 'count': 1}

    Reserved slots hold tasks that no policy scales, such as the readers of topics inside a graph.

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

    def slots_required(self, parallelism: Mapping[str, int]) -> int:
        return self.slots_for(parallelism)


@dataclass(frozen=True)
class Storm(Pipelined):
    """Storm's own mode: as pipelined, with a queue before each operator and threads that may share a core.

    >>> Storm().slots_required({"split": 2, "count": 1})
    0
    """

    name = "storm"
    oversubscribes = True
    has_queues = True

    def slots_required(self, parallelism: Mapping[str, int]) -> int:
        return 0
