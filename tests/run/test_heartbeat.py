"""The heartbeat of a run, on a scripted world: it heals whether or not anybody watches."""

from pathlib import Path
from typing import cast

from rheostat.engines.spark.engine import SparkEngine
from rheostat.run.heartbeat import BEAT_SECONDS, Heartbeat
from tests.scripted.world import Clock, World, application, names


def beating(engine: SparkEngine) -> Heartbeat:
    heartbeat = Heartbeat()
    cast(Clock, engine.clock).on_tick = heartbeat.tick
    heartbeat.start(engine)
    return heartbeat


def test_a_run_that_nobody_watches_replaces_a_lost_node_between_two_turns(tmp_path: Path) -> None:
    world = World(tmp_path)
    engine = application(world, nodes=2)
    beating(engine)
    world.kill_node()
    engine.clock.sleep(20.0)  # as the loop does until the next turn
    assert names(engine) == ("n1", "n3")
    assert len(world.ready()) == 2


def test_whoever_watches_is_called_once_a_second_and_healing_takes_no_longer(tmp_path: Path) -> None:
    world = World(tmp_path)
    engine = application(world, nodes=2)
    beats: list[float] = []
    beating(engine).listen(beats.append)
    began = engine.now()
    engine.clock.sleep(10.0)
    assert 9 <= len(beats) <= 1 + 10 / BEAT_SECONDS
    assert beats == sorted(beats) and beats[0] >= began
    world.kill_node()
    engine.clock.sleep(20.0)
    assert names(engine) == ("n1", "n3")


def test_before_the_application_runs_there_is_no_beat(tmp_path: Path) -> None:
    beats: list[float] = []
    heartbeat = Heartbeat()
    heartbeat.listen(beats.append)
    heartbeat.tick()
    assert beats == []
