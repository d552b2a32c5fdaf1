"""The provider of this machine with real Workers, and an application on nodes of two kinds."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rheostat.model.configuration import NodeKind
from rheostat.model.decision import Placement, Status
from rheostat.providers.local import LocalProvider
from rheostat.services.local_cluster import LocalCluster
from tests.contracts.local_site import local_site
from tests.contracts.provider import LARGE, SMALL, Owned, Site

from .support import application, check_totals, observe_batches, plan


@pytest.mark.long
class TestRealWorkers(Owned):
    @pytest.fixture
    def site(self) -> Iterator[Site]:
        with LocalCluster() as cluster:
            yield local_site(cluster, LocalProvider(cluster, (SMALL, LARGE), ("east", "west")))


KIND = NodeKind("small", cores=0.7, slots=2, memory_mb=1024.0)
DOUBLE = NodeKind("double", cores=1.4, slots=4, executors=2, memory_mb=2048.0, price_per_hour=0.2)


def test_an_application_grows_onto_a_node_of_another_kind_and_stays_there_alone(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    arguments = ("50", "microbatch", "count", str(tmp_path / "totals"))
    start = {"in": 1, "key": 2, "total": 2}
    with application(
        cluster, tmp_path, "totals", *arguments, parallelism=start, kind=KIND, more_kinds=(DOUBLE,)
    ) as engine:
        grow = plan(engine, nodes=2, key=4)
        grow = replace(
            grow, target=replace(grow.target, executors=3), placement=Placement(add=(("double", "local"),))
        )
        outcome = engine.apply(grow)
        assert (outcome.status, outcome.configuration.executors) == (Status.APPLIED, 3), outcome.reason
        small, double = observe_batches(engine, 2).nodes
        assert (small.kind, small.slots, small.executors, small.price_per_hour) == ("small", 2, 1, 0.0)
        assert (double.kind, double.slots, double.executors, double.price_per_hour) == ("double", 4, 2, 0.2)
        first = engine.provider.nodes()[0].name
        outcome = engine.apply(replace(plan(engine, nodes=1, key=2), placement=Placement(remove=(first,))))
        assert outcome.status is Status.APPLIED, outcome.reason
        assert [node.kind.name for node in engine.provider.nodes()] == ["double"]
        observe_batches(engine, 2)
    assert check_totals(tmp_path / "totals") > 0
