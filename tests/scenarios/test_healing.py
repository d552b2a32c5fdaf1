"""What is lost between two changes comes back, on a scripted world."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from threading import Event
from typing import cast

import pytest

from rheostat.engines.spark.actuate.healer import BARE_SECONDS
from rheostat.engines.spark.driver_process import DriverLostError
from rheostat.engines.spark.engine import SparkEngine
from rheostat.model.errors import RheostatError, UserError
from tests.scripted.world import Driver, World, application, change, live, names

from .test_faults import check_runs_as_reported


def events(engine: SparkEngine, seconds: float) -> list[str]:
    """Let time pass; all events of it in words."""
    live(engine, seconds)
    return [event.text for event in engine.observe().events]


def test_a_node_that_ends_by_itself_is_replaced_and_both_are_reported(tmp_path: Path) -> None:
    world = World(tmp_path)
    engine = application(world, nodes=2, key=4)
    world.kill_node()
    texts = events(engine, 30)
    assert "node n2 ended by itself" in texts
    assert "n3 replaced what was lost, with its executors after 8.2 s" in texts
    assert names(engine) == ("n1", "n3")
    check_runs_as_reported(engine, world)


def test_late_executors_of_a_replacement_are_waited_for_and_reported_when_they_register(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)
    engine = application(world)
    world.executor_seconds = 90.0
    world.kill_node()
    late = events(engine, 80)
    assert any(
        text.startswith("n2 started to replace what was lost; 0 of 1 executors were ready in 60 s")
        for text in late
    )
    assert not any("replaced what was lost" in text for text in late)
    assert any("n2 replaced what was lost, with its executors after" in text for text in events(engine, 60))
    check_runs_as_reported(engine, world)


def test_a_replacement_that_cannot_be_ordered_is_retried_after_a_longer_wait_each_time(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)
    engine = application(world, nodes=2, key=4)
    world.refuses_nodes = "no machine left"
    world.kill_node()
    texts = [text for text in events(engine, 60) if "missing" in text]
    waits = [float(text.rpartition("retrying in ")[2].removesuffix(" s")) for text in texts]
    assert texts[0] == "1 of 2 missing: no machine left; retrying in 2 s"
    assert waits == [2.0, 4.0, 8.0, 16.0, 32.0]
    world.refuses_nodes = ""
    live(engine, 60)
    check_runs_as_reported(engine, world)


def test_a_frozen_node_that_its_master_dropped_is_ended_and_replaced(tmp_path: Path) -> None:
    world = World(tmp_path)
    engine = application(world, nodes=2, key=4)
    world.freeze(1000.0)
    for executor in [each for each in world.executors.values() if each.node == "n2"]:
        world._lose(executor, "heartbeat timed out")
    texts = events(engine, BARE_SECONDS + 20)
    assert f"the Master dropped node n2, which had no executors for {BARE_SECONDS:g} s: ended" in texts
    assert names(engine) == ("n1", "n3")
    check_runs_as_reported(engine, world)


def test_a_frozen_node_that_comes_back_in_time_stays(tmp_path: Path) -> None:
    world = World(tmp_path)
    engine = application(world, nodes=2, key=4)
    world.freeze(BARE_SECONDS - 5)
    for executor in [each for each in world.executors.values() if each.node == "n2"]:
        world._lose(executor, "heartbeat timed out")
    texts = events(engine, BARE_SECONDS + 20)
    assert not any("dropped" in text for text in texts)
    assert names(engine) == ("n1", "n2")
    check_runs_as_reported(engine, world)


def test_executors_are_requested_again_for_a_node_without_any_that_its_master_still_has(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)
    engine = application(world)
    world.kill_executor()
    world.wanted = 0  # the request was lost with the executor
    live(engine, BARE_SECONDS + 10)
    assert names(engine) == ("n1",)
    check_runs_as_reported(engine, world)


def test_a_node_that_ends_while_state_is_rewritten_is_replaced_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path)
    engine = application(world)
    replaced, wait = Event(), engine.provider.wait

    def waited(ordered: Sequence[str]) -> None:
        wait(ordered)
        replaced.set()

    def rewrite() -> None:
        world.kill_node()
        assert replaced.wait(60), "without an executor a rewrite waits for ever"

    monkeypatch.setattr(engine.provider, "wait", waited)
    world.on_rescale = rewrite
    outcome = engine.apply(change(engine, total=3))
    assert (outcome.status.value, names(engine)) == ("applied", ("n2",))
    assert "n1 ended by itself, n2 replaced it" in events(engine, 0.5)
    live(engine, 10)
    check_runs_as_reported(engine, world)


def test_a_driver_that_dies_is_restarted_as_planned(tmp_path: Path) -> None:
    world = World(tmp_path)
    engine = application(world, nodes=2, key=5)
    world.kill_driver()
    texts = events(engine, 20)
    assert any("restarting in 1 s" in text for text in texts)
    assert "begin" in world.asked
    check_runs_as_reported(engine, world)


@pytest.mark.parametrize("mode", ["microbatch", "realtime"])
def test_a_driver_and_a_node_that_die_together_recover_as_soon_as_there_is_a_node(
    mode: str, tmp_path: Path
) -> None:
    world = World(tmp_path, mode=mode)
    engine = application(world, nodes=2, key=5 if mode == "microbatch" else 4)
    world.refuses_nodes = "no machine left"
    world.kill_node()
    world.kill_driver()
    live(engine, 300)  # longer than any number of attempts
    world.refuses_nodes = ""
    live(engine, 100)
    check_runs_as_reported(engine, world)
    assert world.deaths == []


def test_a_driver_on_a_foreign_cluster_waits_for_a_worker_that_died_with_it(tmp_path: Path) -> None:
    world = World(tmp_path, mode="realtime", owned=False)
    for _ in range(2):
        world.add_node(world.kind)
    engine = application(world, nodes=2, key=4)
    world.kill_node()
    world.kill_driver()
    live(engine, 300)
    world.add_node(world.kind)  # whoever runs the cluster brings one
    live(engine, 30)
    check_runs_as_reported(engine, world, nodes_are_ours=False)
    assert world.deaths == []


def test_a_driver_that_dies_repeatedly_is_restarted_after_a_longer_wait_each_time(tmp_path: Path) -> None:
    world = World(tmp_path)
    engine = application(world)
    waits: list[float] = []
    for _ in range(3):
        world.kill_driver()
        texts = [text for text in events(engine, 8) if "restarting in" in text]
        waits += [float(text.rpartition("restarting in ")[2].removesuffix(" s")) for text in texts]
    assert waits == [1.0, 2.0, 4.0]
    live(engine, 100)
    world.kill_driver()
    assert any("restarting in 1 s" in text for text in events(engine, 8))


def test_a_driver_that_cannot_be_started_ends_the_run_after_five_attempts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path)
    engine = application(world)
    attempts: list[float] = []

    def start(_spec: object) -> None:
        attempts.append(world.now)
        raise RheostatError("no memory")

    monkeypatch.setattr(engine._keeper, "_start", start)
    world.kill_driver()
    with pytest.raises(RheostatError, match="no memory"):
        live(engine, 600)
    assert len(attempts) == 5
    assert [round(late - early) for early, late in pairwise(attempts)] == [2, 4, 8, 16]


def test_an_application_that_fails_in_the_same_way_again_and_again_ends_the_run(tmp_path: Path) -> None:
    world = World(tmp_path)
    engine = application(world)
    world.silent_until = float("inf")  # no batch ends
    with pytest.raises(RheostatError, match=r"a row is wrong.*5 times in a row, without a batch between"):
        for task in range(20):
            world.fail_driver(f"ValueError: a row is wrong, in task {task}")
            live(engine, 100)
    assert task == 4


def test_an_application_that_gets_on_between_two_failures_is_started_again(tmp_path: Path) -> None:
    world = World(tmp_path)
    engine = application(world)
    for _ in range(8):
        world.fail_driver("ValueError: a row is wrong")
        live(engine, 100)
    check_runs_as_reported(engine, world)


def test_a_driver_that_hangs_is_ended_before_another_is_started(tmp_path: Path) -> None:
    world = World(tmp_path)
    engine = application(world, nodes=2, key=4)
    hanging = cast(Driver, engine.driver)
    hanging.hangs = True
    live(engine, 120)
    assert cast(Driver, engine.driver) is not hanging
    check_runs_as_reported(engine, world)


def test_a_master_that_does_not_answer_ends_no_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path)
    engine = application(world, nodes=2, key=4)

    def dropped(_name: str) -> bool:
        raise OSError("the Master does not answer")

    monkeypatch.setattr(engine.provider, "abandoned", dropped)
    world.starts_executors = False
    world.kill_executor()
    live(engine, 4 * BARE_SECONDS)
    assert names(engine) == ("n1", "n2")


def test_a_driver_that_left_its_reason_is_believed_before_its_spark_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path)
    engine, mistake = application(world), UserError("app.py, line 9: there is no such column")
    driver = engine.driver

    def closed(*_request: object, **_about: object) -> None:
        raise DriverLostError("the driver is gone")

    monkeypatch.setattr(driver, "ask", closed)
    monkeypatch.setattr(driver, "has_left_reason", True)
    monkeypatch.setattr(driver, "failure", lambda: mistake)
    before = world.now
    with pytest.raises(UserError, match="line 9"):
        engine.poll()
    assert world.now == before  # its process still runs
    assert not driver.alive  # until here


def test_on_a_foreign_cluster_executors_that_were_not_requested_are_released(tmp_path: Path) -> None:
    world = World(tmp_path, owned=False)
    for _ in range(3):
        world.add_node(world.kind)
    engine = application(world, nodes=1)
    live(engine, 30)
    assert (world.wanted, len(world.ready()), engine.configuration.nodes) == (1, 1, 1)
    world.wanted = 2  # Spark's own idea
    live(engine, 10)
    world.wanted = 1
    assert any("had an executor that was not requested: released" in text for text in events(engine, 20))
    assert (len(world.ready()), engine.configuration.nodes) == (1, 1)


def test_on_a_foreign_cluster_no_node_is_replaced(tmp_path: Path) -> None:
    world = World(tmp_path, owned=False)
    for _ in range(2):
        world.add_node(world.kind)
    engine = application(world, nodes=2)
    world.kill_node()
    live(engine, 60)
    assert (engine.configuration.nodes, world.alive()) == (1, ["n1"])
    world.add_node(world.kind)  # whoever runs the cluster brings one
    live(engine, 10)
    assert (engine.configuration.nodes, len(world.ready())) == (2, 2)
