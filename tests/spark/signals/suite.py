"""Each policy's own signal, in windows that Spark measured, makes it act on Spark. Both modes pass this.

The windows are measured once: rows that wait because one instance of `wait` cannot keep up, and a load that
rises but is still served. Every policy decides on them, and what it decides is applied and seen.
A module that imports this has a fixture `scene`.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from rheostat.analyze.evaluation import Evaluation
from rheostat.model.observation import Observation
from rheostat.policies.registry import available

from .scene import WAIT_SECONDS, Scene, act, cause, decide

FULL_RATE = 1 / WAIT_SECONDS  # rows/s that keep one instance of `wait` busy
RISE_SECONDS = 9.0


@pytest.fixture(scope="module")
def overloaded(scene: Scene) -> Observation:
    """More rows than one instance can serve: they wait, batches are late, and nodes are idle."""

    def shows(observed: Observation, judged: Evaluation) -> bool:
        batches = observed.application.batch_seconds or 0.0
        late = batches > 1.2 * (observed.application.trigger_seconds or 0.0)
        idle = (observed.nodes[0].cpu or 1.0) < 0.8
        return late and idle and judged.operators["wait"].utilisation > 1.2 and kept_up(observed) < 0.9

    scene.calm_down()
    scene.offer(1.6 * FULL_RATE)
    observed = scene.window(shows, "a queue", running=scene.late_seconds)
    scene.calm()
    return observed


@pytest.fixture(scope="module")
def rising(scene: Scene) -> Observation:
    """A load that rises from nearly nothing to nearly all that one instance can serve."""
    scene.calm_down()
    scene.offer(0.05 * FULL_RATE, rise=0.07 * FULL_RATE)
    observed = scene.window(lambda *_: True, "a rise", open_for=RISE_SECONDS)
    scene.calm()
    return observed


def kept_up(observed: Observation) -> float:
    """P0's health of the queue at the source."""
    source = observed.operators["in"]
    return (source.processed or 0.0) / (source.received or 1.0)


def enough(scene: Scene, folder: Path) -> Path:
    """A map in which the smallest size serves every load, so that only a queue can ask for more."""
    single = dict.fromkeys(scene.engine.topology.names, 1)
    levels = folder / "map.json"
    levels.write_text(json.dumps({"levels": [{"load": 1e6, "parallelism": single, "nodes": 1}]}))
    return levels


def test_a_queue_at_the_source_makes_multilevel_grow(
    scene: Scene, overloaded: Observation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = act(scene, overloaded, f"multilevel(map={enough(scene, tmp_path)})", monkeypatch)
    assert cause(turn, "health", "wait").threshold == 0.9
    assert kept_up(overloaded) < 0.9
    assert turn.plan.target.parallelism["wait"] > 1


def test_a_busy_replica_makes_e2df_grow(
    scene: Scene, overloaded: Observation, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = act(scene, overloaded, "e2df(C_r=0)", monkeypatch)
    assert cause(turn, "utilisation", "busiest wait").threshold == 0.7
    assert turn.plan.target.parallelism["wait"] == 2


def test_a_rising_line_of_arrivals_makes_autoscale_grow_before_anything_waits(
    scene: Scene, rising: Observation, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = act(scene, rising, "autoscale", monkeypatch)
    assert cause(turn, "activity", "wait").value > 0.8
    assert turn.plan.target.parallelism["wait"] > 1
    source = rising.operators["in"]
    assert sum(source.arrivals[3:]) > 1.5 * sum(source.arrivals[:3])
    even = replace(source, arrivals=(sum(source.arrivals) / len(source.arrivals),) * len(source.arrivals))
    flat = replace(rising, operators={**rising.operators, "in": even})
    scene.at()
    assert not decide(scene, flat, "autoscale", monkeypatch, dry_run=True).plan.changes


def test_a_busy_core_makes_joint_add_an_instance_and_a_node(
    scene: Scene, overloaded: Observation, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = act(scene, overloaded, "joint", monkeypatch)
    assert cause(turn, "core usage", "wait").threshold == 0.65
    assert (turn.plan.target.parallelism["wait"], turn.plan.target.nodes) == (2, 2)


def test_a_load_above_the_true_rate_makes_ds2_grow(
    scene: Scene, overloaded: Observation, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = act(scene, overloaded, "ds2", monkeypatch)
    assert cause(turn, "utilisation", "wait").threshold == 1.0
    assert turn.plan.target.parallelism["wait"] > 2


def test_an_occupancy_above_one_makes_occupancy_grow(
    scene: Scene, overloaded: Observation, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = act(scene, overloaded, "occupancy", monkeypatch)
    assert cause(turn, "occupancy", "commanded").threshold == 1.0
    assert turn.plan.target.parallelism["wait"] > 1


def test_a_utilisation_above_its_threshold_makes_threshold_grow(
    scene: Scene, overloaded: Observation, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = act(scene, overloaded, "threshold", monkeypatch)
    assert cause(turn, "utilisation", "wait").threshold == 0.8
    assert turn.plan.target.parallelism["wait"] == 2


def test_no_policy_takes_instances_away_that_wait(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """1.3 instances are busy, of two, and use hardly any CPU."""
    scene.calm_down(wait=2)
    scene.offer(1.3 * FULL_RATE)
    observed = scene.window(lambda _, judged: judged.operators["wait"].busy > 1.1, "instances that wait")
    scene.calm()
    assert (observed.operators["wait"].cpu_seconds or 0.0) < 0.2 * observed.seconds
    for name in available():
        plan = decide(scene, observed, name, monkeypatch, dry_run=True).plan
        assert plan.target.parallelism["wait"] >= 2, (name, plan.reason)
