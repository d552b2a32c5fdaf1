"""Every provider that works without Spark keeps the port's promises; real Workers: tests/spark."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rheostat.providers.allocated import AllocatedProvider
from rheostat.providers.local import LocalProvider
from rheostat.providers.simulated import SimulatedProvider
from rheostat.providers.standalone import StandaloneProvider
from rheostat.services.local_cluster import LocalCluster
from tests.contracts.provider import LARGE, SMALL, Hosted, Owned, Site
from tests.scripted.world import Clock, Nodes, World


def by_name(name: str) -> tuple[str, str]:
    return name, ""


def address_in(cluster: LocalCluster) -> Callable[[str], tuple[str, str]]:
    def address(name: str) -> tuple[str, str]:
        port = next(worker.port for worker in cluster.workers() if worker.name == name)
        return "127.0.0.1", f"127.0.0.1:{port}"

    return address


@pytest.fixture
def cluster(scripted_spark: None) -> Iterator[LocalCluster]:
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
    def site(self, cluster: LocalCluster) -> Site:
        return Site(
            LocalProvider(cluster, (SMALL, LARGE), ("east", "west")), address_in(cluster), killer(cluster)
        )


class TestStandalone(Hosted):
    @pytest.fixture
    def site(self) -> Site:
        return Site(StandaloneProvider((SMALL,)), lambda name: (name, f"{name}:8081"))


class TestAllocated(Hosted):
    @pytest.fixture
    def site(self, cluster: LocalCluster) -> Site:
        return Site(AllocatedProvider(cluster, SMALL, 2), address_in(cluster))


def killer(cluster: LocalCluster) -> Callable[[str], None]:
    def kill(name: str) -> None:
        worker = next(worker for worker in cluster.workers() if worker.name == name)
        os.killpg(worker.process.pid, signal.SIGKILL)
        until = time.monotonic() + 20
        while worker.alive and time.monotonic() < until:
            time.sleep(0.01)

    return kill
