"""E2DF on a scripted application in Real-Time Mode: it ends nodes that are empty, and no others."""

from pathlib import Path

from rheostat.control.loop import Loop
from rheostat.model.configuration import Bounds
from rheostat.policies.e2df import E2df
from tests.scripted.world import World, application


def test_nodes_that_host_instances_are_not_ended(tmp_path: Path) -> None:
    world = World(tmp_path, mode="realtime", task_cpu_seconds=0.15)
    engine = application(world, nodes=4, key=4)  # six instances on all four nodes
    loop = Loop(engine, engine.clock, E2df(period_seconds=5), Bounds(1, 8))
    turns = list(loop.run(until=world.now + 60))
    assert len(turns) >= 10
    assert {turn.outcome.configuration.nodes for turn in turns} == {4}
    assert world.deaths == []


def test_a_new_node_that_hosts_nothing_is_removed(tmp_path: Path) -> None:
    world = World(tmp_path, mode="realtime", task_cpu_seconds=0.15)
    engine = application(world, nodes=8, key=4)  # six instances on four of the nodes
    loop = Loop(engine, engine.clock, E2df(period_seconds=5), Bounds(1, 8))
    *_, last = loop.run(until=world.now + 60)
    assert last.outcome.configuration.nodes == 4
    assert world.deaths == []
