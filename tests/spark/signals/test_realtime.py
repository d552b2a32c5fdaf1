"""The papers' signals in Real-Time Mode, where slots outnumber cores: instances and nodes are apart."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rheostat.analyze.evaluation import Evaluation
from rheostat.model.configuration import NodeKind
from rheostat.model.observation import Observation
from rheostat.services.local_cluster import LocalCluster

from .scene import WAIT_SECONDS, Scene, act, cause, decide, running
from .suite import *  # noqa: F403
from .suite import enough, kept_up

KIND = NodeKind(cores=0.5, slots=16, memory_mb=1024.0)
BURNING = 3  # operators
OVERLOADED = 0.5  # of the node, where P0 has 0.9: beside busy processes it does not get all its cores
ROUNDS = 100_000  # of a hash, in each of them


@pytest.fixture(scope="module")
def scene(cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    yield from running(cluster, tmp_path_factory.mktemp("commanded"), "realtime", KIND, burning=BURNING)


@pytest.fixture(scope="module")
def full(scene: Scene) -> Observation:
    """Operators of which each takes two fifths of the node: together more than there is."""
    scene.calm_down()
    scene.offer(10, wait=WAIT_SECONDS / 100, rounds=ROUNDS)
    scene.window(lambda *_: True, "the last batch with others")
    seen = scene.window(lambda *_: True, "rows that burn")
    judged = scene.evaluate(seen).operators
    cost = max(judged[f"burn{number}"].cost_seconds for number in range(BURNING))
    scene.offer(0.4 * KIND.cores / cost, wait=WAIT_SECONDS / 100, rounds=ROUNDS)

    def shows(observed: Observation, judged: Evaluation) -> bool:
        busy = (observed.nodes[0].cpu or 0.0) > OVERLOADED
        return busy and judged.cpu > 0.9 and kept_up(observed) < 0.9

    observed = scene.window(shows, "a full node")
    scene.calm()
    return observed


def test_occupancy_does_not_take_the_span_of_a_batch_for_its_work(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch takes as long as the trigger says, and a little longer, however few rows come."""
    quiet = scene.calm_down()
    application = quiet.application
    assert (application.batch_seconds or 0.0) >= (application.trigger_seconds or 0.0)
    plan = decide(scene, quiet, "occupancy", monkeypatch, dry_run=True).plan
    assert plan.target == plan.current


def test_an_instance_above_core_max_on_an_idle_node_makes_elysium_add_instances_and_no_node(
    scene: Scene, overloaded: Observation, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (overloaded.nodes[0].cpu or 0.0) < 0.8
    turn = act(scene, overloaded, "elysium", monkeypatch)
    assert cause(turn, "instances needed", "wait").value > 2
    assert turn.plan.target.nodes == 1
    assert "65% busy" in turn.plan.reason


def test_a_full_node_with_idle_instances_makes_elysium_add_a_node_and_no_instances(
    scene: Scene, full: Observation, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = act(scene, full, "elysium", monkeypatch)
    assert max(one.utilisation for one in scene.evaluate(full).operators.values()) < 0.65
    assert cause(turn, "nodes needed", "commanded").value == 2
    assert set(turn.plan.target.parallelism.values()) == {1}


def test_a_congested_operator_on_an_overloaded_node_makes_multilevel_add_a_node(
    scene: Scene, full: Observation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = f"multilevel(map={enough(scene, tmp_path)},overloaded={OVERLOADED})"
    turn = act(scene, full, policy, monkeypatch)
    (health,) = turn.plan.causes
    assert (health.measure, health.threshold) == ("health", 0.9)
    assert (full.nodes[0].cpu or 0.0) > OVERLOADED
    assert turn.plan.target.nodes == 2
    assert turn.plan.target.parallelism[health.subject] == 2
