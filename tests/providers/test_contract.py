"""Every provider that works without Spark keeps the port's promises; real Workers: tests/spark."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rheostat.providers.allocated import AllocatedProvider
from rheostat.providers.local import LocalProvider
from rheostat.providers.simulated import SimulatedProvider
from rheostat.providers.standalone import StandaloneProvider
from rheostat.services.local_cluster import LocalCluster
from tests.contracts.local_site import local_site
from tests.contracts.provider import LARGE, SMALL, Hosted, Owned, Site
from tests.scripted.world import Clock, Nodes, World


def by_name(name: str) -> tuple[str, str]:
    return name, ""


@pytest.fixture
def scripted_cluster(scripted_spark: None) -> Iterator[LocalCluster]:
    with LocalCluster() as started:
        yield started


class TestSimulated(Owned):
    @pytest.fixture
    def site(self, tmp_path: Path) -> Site:
        return Site(SimulatedProvider(Clock(World(tmp_path)), (SMALL, LARGE), ("east", "west")), by_name)


class TestScripted(Owned):
    @pytest.fixture
    def site(self, tmp_path: Path) -> Site:
        world = World(tmp_path, kind=SMALL, more_kinds=(LARGE,))

        def kill(name: str) -> None:
            world.nodes[name].alive = False

        return Site(Nodes(world), by_name, kill)


class TestLocal(Owned):
    @pytest.fixture
    def site(self, scripted_cluster: LocalCluster) -> Site:
        return local_site(scripted_cluster, LocalProvider(scripted_cluster, (SMALL, LARGE), ("east", "west")))


class TestStandalone(Hosted):
    @pytest.fixture
    def site(self) -> Site:
        return Site(StandaloneProvider((SMALL,)), lambda name: (name, f"{name}:8081"))


class TestAllocated(Hosted):
    @pytest.fixture
    def site(self, scripted_cluster: LocalCluster) -> Site:
        return local_site(scripted_cluster, AllocatedProvider(scripted_cluster, SMALL, 2))
