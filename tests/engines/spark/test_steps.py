"""The order in which a plan is carried out, and the way back, on a scripted world."""

from dataclasses import replace
from pathlib import Path

import pytest

from rheostat.model.configuration import Configuration
from rheostat.model.decision import Placement, Status
from rheostat.model.errors import UserError
from rheostat.policies.registry import build
from rheostat.run.order import Order
from rheostat.run.site import check_kinds
from tests.scripted.world import KIND, World, application, change, live, names


@pytest.fixture(params=["microbatch", "realtime"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    return World(tmp_path, mode=request.param)


def microbatch(folder: Path) -> World:
    return World(folder)


def realtime(folder: Path) -> World:
    return World(folder, mode="realtime")


def test_in_micro_batch_tasks_for_new_nodes_are_made_before_the_nodes_are_ordered(tmp_path: Path) -> None:
    world = microbatch(tmp_path)
    engine = application(world)
    outcome = engine.apply(change(engine, nodes=2, key=4))
    assert (outcome.status, outcome.configuration.nodes) == (Status.APPLIED, 2)
    assert world.asked == ["parallelism key=4", "nodes n2", "executors 2", "parallelism key=4"]


def test_in_real_time_mode_instances_come_after_the_executors_with_slots_for_them(
    tmp_path: Path,
) -> None:
    world = realtime(tmp_path)
    engine = application(world)
    assert engine.apply(change(engine, nodes=2, key=6)).status is Status.APPLIED
    assert world.asked == ["nodes n2", "executors 2", "parallelism key=6"]
    live(engine, 10)
    assert world.deaths == []


def test_a_scale_in_lowers_the_parallelism_waits_for_a_batch_and_then_frees_the_youngest_nodes(
    world: World,
) -> None:
    world.batch_seconds = 10.0
    engine = application(world, nodes=3, key=6)
    committed: dict[str, int] = {}

    def count(step: str) -> None:
        committed[step] = len(world.committed)

    engine._actuator.before_step = count
    outcome = engine.apply(change(engine, nodes=1, key=2))
    assert (outcome.status, names(engine)) == (Status.APPLIED, ("n1",))
    assert world.asked == ["parallelism key=2", "executors 1", "decommission 2", "remove n2", "remove n3"]
    # A micro-batch that ends is enough; in Real-Time Mode the next one must have been seen to run.
    assert committed["release"] >= committed["batch"] + (2 if world.mode == "realtime" else 1)
    assert world.deaths == []


def test_an_outcome_has_the_pause_and_the_steps_of_its_own_change(tmp_path: Path) -> None:
    engine = application(microbatch(tmp_path))
    assert engine.apply(change(engine, total=3)).pause_seconds > 0
    second = engine.apply(change(engine, key=3))
    assert second.pause_seconds == 0
    assert second.steps == ("key 2 -> 3",)


def test_a_plan_that_names_nodes_exchanges_exactly_these(world: World) -> None:
    engine = application(world, nodes=2, key=4)
    places = Placement(add=(("small", "local"),), remove=("n1",))
    plan = replace(change(engine), placement=places, changes=True)
    assert engine.apply(plan).status is Status.APPLIED
    assert names(engine) == ("n2", "n3")
    assert world.asked[0] == "nodes n3" and world.asked[-1] == "remove n1"
    live(engine, 5)
    assert (len(world.ready()), world.deaths) == (2, [])


def test_state_is_rewritten_after_the_nodes_are_up_and_its_pause_is_reported(tmp_path: Path) -> None:
    world = microbatch(tmp_path)
    engine = application(world)
    outcome = engine.apply(change(engine, nodes=2, total=4))
    assert (outcome.status, outcome.pause_seconds) == (Status.APPLIED, 2.0)
    assert world.asked == ["nodes n2", "executors 2", "rescale total=4"]
    assert engine.configuration.parallelism["total"] == 4


def test_what_spark_cannot_rewrite_is_refused_before_anything_is_touched(tmp_path: Path) -> None:
    world = realtime(tmp_path)
    engine = application(world)
    before = engine.configuration
    outcome = engine.apply(change(engine, nodes=2, total=2))
    assert (outcome.status, outcome.configuration) == (Status.FAILED, before)
    assert "the stateful operators keep their parallelism" in outcome.reason
    assert world.asked == []


def test_a_failed_rewrite_releases_the_new_nodes(tmp_path: Path) -> None:
    world = microbatch(tmp_path)
    engine = application(world)
    before = engine.configuration
    world.rewrites = "the disk is full"
    outcome = engine.apply(change(engine, nodes=2, key=4, total=4))
    assert (outcome.status, outcome.configuration) == (Status.FAILED, before)
    assert outcome.reason == "the disk is full; rolled back"
    assert world.asked[-4:] == ["parallelism key=2", "executors 1", "decommission 1", "remove n2"]
    assert names(engine) == ("n1",)


def test_nodes_that_cannot_be_ordered_leave_everything_as_it_was(world: World) -> None:
    engine = application(world)
    before = engine.configuration
    world.refuses_nodes = "no machine left"
    outcome = engine.apply(change(engine, nodes=2, key=4))
    assert (outcome.status, outcome.configuration, engine.configuration) == (Status.FAILED, before, before)
    assert outcome.reason == "no machine left; rolled back"
    live(engine, 5)
    assert (world.parallelism["key"], len(world.ready()), world.deaths) == (2, 1, [])


def test_executors_that_do_not_register_in_time_are_a_failure_and_their_nodes_are_removed(
    world: World,
) -> None:
    engine = application(world)
    before = engine.configuration
    world.executor_seconds = 100.0
    outcome = engine.apply(change(engine, nodes=2, key=4))
    assert (outcome.status, engine.configuration) == (Status.FAILED, before)
    assert "1 of 2 executors were ready in 60 s (2 registered); rolled back" in outcome.reason
    assert names(engine) == ("n1",)
    live(engine, 5)
    assert (world.wanted, world.parallelism["key"], world.deaths) == (1, 2, [])


def test_instances_without_slots_are_refused_in_real_time_mode(tmp_path: Path) -> None:
    world = realtime(tmp_path)
    engine = application(world)
    outcome = engine.apply(change(engine, key=6))
    assert (outcome.status, engine.configuration.parallelism["key"]) == (Status.FAILED, 2)
    assert "8 instances need a slot each, there are 4" in outcome.reason
    live(engine, 5)
    assert world.deaths == []


def test_a_query_without_a_slot_for_each_instance_never_begins_in_real_time_mode(tmp_path: Path) -> None:
    world = World(tmp_path, mode="realtime", kind=replace(KIND, slots=2))
    engine = application(world, began=False)
    with pytest.raises(UserError, match="gives 3 instances a slot each, the nodes have 2: allow more with"):
        engine.begin(Configuration({"in": 1, "key": 1, "total": 1}, executors=1, nodes=1))
    assert not world.begun  # so it has no checkpoint yet, and another mode may still have it


def test_an_executor_that_does_not_leave_is_killed_in_micro_batch_and_kept_in_real_time_mode(
    world: World,
) -> None:
    engine = application(world, nodes=2, key=2)
    world.silent_until = world.now + 1000  # no batch ends, so nobody leaves
    outcome = engine.apply(change(engine, nodes=1))
    if world.mode == "microbatch":
        assert (outcome.status, names(engine)) == (Status.APPLIED, ("n1",))
        assert world.asked[-2:] == ["kill 1", "remove n2"]
    else:
        assert (outcome.status, names(engine)) == (Status.FAILED, ("n1", "n2"))
        assert "did not leave in 60 s: they may still be needed, so they stay" in outcome.reason
        assert "kill 1" not in world.asked


def test_the_window_after_a_change_holds_no_batch_of_the_old_configuration(world: World) -> None:
    engine = application(world)
    engine.apply(change(engine, nodes=2, key=5))
    live(engine, 5)
    observation = engine.observe()
    assert observation.operators["key"].parallelism == 5
    assert observation.application.batches and observation.application.batches >= 2


def test_nodes_list_the_instances_they_ran(world: World) -> None:
    engine = application(world, nodes=2, key=4)
    live(engine, 5)
    observation = engine.observe()
    placed = {node.name: node.instances for node in observation.nodes}
    total = world.state
    assert placed["n1"] == {"in": 1, "key": 2, "total": 1}
    assert placed["n2"] == {"key": 2, "total": total - 1} if total > 1 else {"key": 2}


def test_tasks_beyond_the_slots_of_a_node_do_not_run_at_once(tmp_path: Path) -> None:
    engine = application(microbatch(tmp_path), key=9)
    live(engine, 5)
    assert engine.observe().nodes[0].instances == {"in": 1, "key": 4, "total": 2}


def test_a_window_without_a_batch_still_knows_where_instances_run(tmp_path: Path) -> None:
    world = realtime(tmp_path)
    engine = application(world, nodes=2, key=4)
    engine.observe()
    world.silent_until = world.now + 100
    live(engine, 3)
    assert [node.assigned for node in engine.observe().nodes] == [4, 2]


LARGE = replace(KIND, name="large", cores=2.0, slots=8, executors=2)


def test_a_node_of_another_kind_brings_its_own_executors_and_slots(world: World) -> None:
    world.more_kinds = (LARGE,)
    engine = application(world)
    plan = change(engine, nodes=2, key=8)
    executors = plan.current.executors + LARGE.executors
    plan = replace(
        plan, target=replace(plan.target, executors=executors), placement=Placement(add=(("large", "local"),))
    )
    outcome = engine.apply(plan)
    assert (outcome.status, outcome.configuration.executors) == (Status.APPLIED, 3)
    assert [node.kind.name for node in engine.provider.nodes()] == ["small", "large"]
    assert "executors 3" in world.asked
    live(engine, 5)
    assert [(node.kind, node.slots) for node in engine.observe().nodes] == [("small", 4), ("large", 8)]

    world.kill_node()
    live(engine, 60)
    assert [node.kind.name for node in engine.provider.nodes()] == ["small", "large"]  # healed by its like
    plan = replace(change(engine, nodes=1, key=2), placement=Placement(remove=("n1",)))
    assert engine.apply(plan).status is Status.APPLIED
    assert [node.kind.name for node in engine.provider.nodes()] == ["large"]
    assert engine.configuration.executors == 2
    live(engine, 10)
    assert world.running is not None or world.committed


def test_kinds_that_cannot_be_mixed_are_refused() -> None:
    order = Order("app", Path("app.py"), build("static"), "static", Path(), kinds=(KIND, LARGE))
    check_kinds(order)
    with pytest.raises(UserError, match="slots / executors"):
        check_kinds(replace(order, kinds=(KIND, replace(LARGE, executors=1))))
    with pytest.raises(UserError, match="with --master give one kind"):
        check_kinds(replace(order, master="spark://h:1"))


def test_a_node_that_stays_for_one_that_ended_is_planned_whatever_its_kind(tmp_path: Path) -> None:
    world = microbatch(tmp_path)
    world.more_kinds = (LARGE,)
    engine = application(world)
    plan = change(engine, nodes=2, key=8)
    plan = replace(
        plan, target=replace(plan.target, executors=3), placement=Placement(add=(("large", "local"),))
    )
    assert engine.apply(plan).status is Status.APPLIED

    def strike(step: str) -> None:
        if step == "release":
            world.kill_node(0)

    engine._actuator.before_step = strike
    into = replace(change(engine, nodes=1, key=2), placement=Placement(remove=("n2",)))
    assert engine.apply(into).status is Status.APPLIED
    live(engine, 90)
    assert [node.kind.name for node in engine.provider.nodes()] == ["large"]
    assert len(world.ready()) == world.wanted == LARGE.executors
