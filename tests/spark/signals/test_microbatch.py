"""The papers' signals in micro-batch, where a queue shows while a batch is late."""

from collections.abc import Iterator

import pytest

from rheostat.model.configuration import NodeKind
from rheostat.model.observation import Observation
from rheostat.services.local_cluster import LocalCluster

from .scene import Scene, act, cause, running
from .suite import *  # noqa: F403

KIND = NodeKind(cores=1.0, slots=4, memory_mb=1024.0)


@pytest.fixture(scope="module")
def scene(cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    yield from running(cluster, tmp_path_factory.mktemp("commanded"), "microbatch", KIND, burning=0)


def test_slots_above_core_max_make_elysium_add_tasks(
    scene: Scene, overloaded: Observation, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = act(scene, overloaded, "elysium", monkeypatch)
    assert cause(turn, "instances needed", "wait").value > 2
    assert "65% busy" in turn.plan.reason
