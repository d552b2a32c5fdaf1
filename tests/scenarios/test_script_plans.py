"""The plan of a script's query is known when its first batch is planned, which may be late."""

from pathlib import Path

from rheostat.model.configuration import Configuration
from rheostat.model.decision import Status
from tests.scripted.world import World, application, change, live


def script(folder: Path, planned: bool = True) -> World:
    return World(folder, script=True, shuffles=True, planned=planned)


def test_until_it_is_known_one_operator_stands_for_the_query(tmp_path: Path) -> None:
    world = script(tmp_path, planned=False)
    engine = application(world, began=False)
    assert [operator.name for operator in engine.topology.operators] == ["in (starting)"]
    engine.begin(Configuration({"in (starting)": 1}, 1, 1))
    world.planned = True
    live(engine, 2)
    assert engine.topology.names == ("in", "key", "total")
    assert engine.configuration.parallelism == {"in": 1, "key": 2, "total": 2}


def test_what_a_resumed_run_had_is_set_when_the_plan_is_known(tmp_path: Path) -> None:
    world = script(tmp_path, planned=False)
    engine = application(world, began=False)
    engine.begin(Configuration({"in": 1, "key": 5, "total": 2}, 1, 1))
    live(engine, 2)
    assert engine.configuration.parallelism == {"in (starting)": 1}
    world.planned = True
    live(engine, 2)
    assert engine.configuration.parallelism == {"in": 1, "key": 5, "total": 2}
    assert world.script_tasks["key"] == 5


def test_a_driver_that_is_started_again_keeps_the_parallelism_though_its_plan_is_late(tmp_path: Path) -> None:
    world = script(tmp_path)
    engine = application(world)
    assert engine.apply(change(engine, key=4)).status is Status.APPLIED
    world.planned = False
    world.kill_driver()
    live(engine, 30)
    assert (world.drivers, world.script_tasks["key"]) == (1, 4)
    assert engine.topology.names == ("in", "key", "total")  # as it was: the script did not change
    world.planned = True
    live(engine, 5)
    assert engine.configuration.parallelism["key"] == world.script_tasks["key"] == 4
