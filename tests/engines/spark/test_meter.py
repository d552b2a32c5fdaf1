"""What nodes use, by what their executors tell: on a cluster of somebody else there is nothing more."""

from collections.abc import Sequence
from dataclasses import astuple

import pytest

from rheostat.engines.spark.observe.meter import Meter, NodeUse
from rheostat.engines.spark.protocol import Executor, Vitals
from rheostat.model.configuration import NodeKind
from rheostat.providers.standalone import StandaloneProvider


class Cluster:
    """Executors that tell what the test put in; two of them share node a."""

    nodes = ("a", "a", "b")

    def __init__(self) -> None:
        self.vitals: list[Vitals | None] = [None] * len(self.nodes)
        provider = StandaloneProvider((NodeKind(cores=1.0, slots=2),))
        provider.refresh(self.nodes)
        self.meter = Meter(provider, self.hosted)

    def hosted(self) -> dict[str, list[Executor]]:
        hosted: dict[str, list[Executor]] = {}
        for number, (node, vitals) in enumerate(zip(self.nodes, self.vitals, strict=True)):
            hosted.setdefault(node, []).append(Executor(str(number), node, 1, vitals=vitals))
        return hosted

    def tell(self, *cpu_seconds: float, at: int, heap: Sequence[float] = (0.1, 0.2, 0.3)) -> None:
        self.vitals = [
            Vitals(
                at,
                gc_seconds=cpu / 10,
                heap=left,
                cpu_seconds=cpu,
                compile_seconds=cpu / 2,
                load_seconds=cpu / 4,
                memory_bytes=100.0,
            )
            for cpu, left in zip(cpu_seconds, heap, strict=True)
        ]


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_without_vitals_nothing_is_known(cluster: Cluster) -> None:
    assert cluster.meter.read(10.0) == {"a": NodeUse(), "b": NodeUse()}


def test_executors_of_a_node_count_together_and_the_worst_heap_of_them(cluster: Cluster) -> None:
    cluster.tell(10.0, 10.0, 10.0, at=0)
    cluster.meter.look()
    cluster.tell(11.0, 13.0, 10.5, at=10_000)
    used = cluster.meter.read(10.0)
    assert astuple(used["a"]) == pytest.approx((0.4, 200.0, 0.03, 0.75, 0.2))
    assert used["b"].cores == pytest.approx(0.05)


def test_a_reading_counts_from_the_one_before_and_needs_a_newer_sample(cluster: Cluster) -> None:
    cluster.tell(1.0, 1.0, 1.0, at=0)
    cluster.meter.read(0.0)
    cluster.tell(3.0, 2.0, 2.0, at=1000)
    assert cluster.meter.read(1.0)["a"].cores == pytest.approx(3.0)
    again = cluster.meter.read(1.5)["a"]  # the executors told nothing new
    assert (again.cores, again.compiling, again.memory_bytes) == (None, None, 200.0)
    cluster.tell(3.5, 2.5, 2.0, at=2000)
    assert cluster.meter.read(2.0)["a"].cores == pytest.approx(1.0)


def test_of_a_node_of_which_one_executor_is_silent_cpu_and_memory_are_not_known(cluster: Cluster) -> None:
    cluster.tell(1.0, 1.0, 1.0, at=0)
    cluster.meter.look()
    cluster.tell(2.0, 2.0, 2.0, at=1000)
    cluster.vitals[1] = None
    used = cluster.meter.read(1.0)
    assert (used["a"].cores, used["a"].memory_bytes, used["a"].heap) == (None, None, 0.1)
    assert used["b"].cores == pytest.approx(1.0)


def test_an_executor_whose_clock_went_back_is_another_one(cluster: Cluster) -> None:
    cluster.tell(9.0, 9.0, 9.0, at=50_000)
    cluster.meter.read(0.0)
    cluster.tell(1.0, 1.0, 1.0, at=1000)  # the driver was restarted, and with it the executors
    assert cluster.meter.read(1.0)["b"].cores is None
    cluster.tell(1.5, 1.5, 1.5, at=2000)
    assert cluster.meter.read(2.0)["b"].cores == pytest.approx(0.5)
