"""Applications that many tests share: starting one costs half a minute of CPU, changing it little.

A test finds one in any state. It begins with `at`, which brings it to the size that the test needs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rheostat.engines.spark.engine import SparkEngine
from rheostat.model.configuration import Configuration, NodeKind
from rheostat.model.decision import Plan, Status
from rheostat.services.local_cluster import LocalCluster

from .support import application, observe_batches

TOTALS_KIND = NodeKind(cores=1.0, slots=4, memory_mb=1024.0)
CHAIN_KIND = NodeKind(cores=0.7, slots=2, memory_mb=1024.0)
CHAIN_LOAD = 300  # rows/s


@dataclass(frozen=True)
class Shared:
    """A running application and the folder that it writes to."""

    engine: SparkEngine
    folder: Path

    def at(self, nodes: int = 1, **parallelism: int) -> SparkEngine:
        """Scale it; operators that are not named keep their parallelism."""
        now = self.engine.configuration
        executors = nodes * self.engine.kinds[0].executors
        target = Configuration({**now.parallelism, **parallelism}, executors, nodes)
        if target != now:
            plan = Plan(1, self.engine.now(), now, target, "a test needs it")
            outcome = self.engine.apply(plan)
            assert outcome.status is Status.APPLIED, outcome.reason
        self.engine.observe()
        return self.engine


def chain(cluster: LocalCluster, folder: Path, mode: str) -> Iterator[Shared]:
    """The chain of the Engine's contract."""
    start = {"in": 1, "work": 1, "out": 1}
    arguments = (str(CHAIN_LOAD), mode)
    with application(
        cluster, folder, "chain", *arguments, parallelism=start, mode=mode, kind=CHAIN_KIND, nodes=2
    ) as engine:
        observe_batches(engine, 2)
        yield Shared(engine, folder)
