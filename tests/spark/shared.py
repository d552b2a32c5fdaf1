"""Applications that many tests share: starting one costs half a minute of CPU, changing it little.

A test finds one in any state. It begins with `at`, which brings it to the size that the test needs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from rheostat.engines.spark.engine import SparkEngine
from rheostat.model.configuration import Configuration, NodeKind
from rheostat.model.decision import Plan, Status
from rheostat.model.observation import ARRIVAL_PARTS, Observation
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


def check_instances(observed: Observation) -> None:
    """Check what two instances of work did: a shuffle deals its rows out evenly."""
    work, source = observed.operators["work"], observed.operators["in"]
    assert len(work.instances) == work.parallelism == 2
    assert {instance.node for instance in work.instances} <= {node.name for node in observed.nodes}
    rows = [instance.processed or 0.0 for instance in work.instances]
    assert sum(rows) == pytest.approx(work.processed)
    assert rows[0] == pytest.approx(rows[1], rel=0.02)
    assert [instance.processed for instance in source.instances] == [pytest.approx(source.processed)]
    used = [instance.utilisation or 0.0 for instance in work.instances]
    by_window = (work.cpu_seconds or 0.0) / (2 * CHAIN_KIND.cores * observed.seconds)
    assert 0.5 * by_window < sum(used) / 2 < 1.05
    assert 0.5 < used[0] / used[1] < 2.0


def check_line(observed: Observation) -> None:
    """Check that a constant load shows as a flat line, whatever batches it came in."""
    arrivals, part = observed.operators["in"].arrivals, CHAIN_LOAD * observed.seconds / ARRIVAL_PARTS
    assert arrivals == pytest.approx([part] * ARRIVAL_PARTS, rel=0.5)  # a source may count whole seconds
    assert sum(arrivals) == pytest.approx(CHAIN_LOAD * observed.seconds, rel=0.15)
    assert observed.operators["work"].arrivals == ()
