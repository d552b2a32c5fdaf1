import pytest
from hypothesis import given
from hypothesis import strategies as st

from rheostat.analyze.execution import ExecutionModel, FixedTasks, Pipelined, Staged, Storm, ceil

BUSY = {"lines": 0.5, "split": 1.5, "count": 3.0}
MODELS = [Pipelined(), Storm(), Staged(10.0, 0.1)]


def test_pipelined_utilisation_is_work_over_instances_whatever_the_slots() -> None:
    used = Pipelined().utilisation(BUSY, {"lines": 1, "split": 2, "count": 2}, slots=1)
    assert used == {"lines": 0.5, "split": 0.75, "count": 1.5}


def test_staged_stages_share_all_slots_in_turn() -> None:
    # sum of busy_i / min(p_i, S) + o / T = 0.5/1 + 1.5/2 + 3/4 + 3 * 0.2/10
    used = Staged(10.0, 0.2).utilisation(BUSY, {"lines": 1, "split": 2, "count": 8}, slots=4)
    assert used == pytest.approx(dict.fromkeys(BUSY, 0.5 + 0.75 + 0.75 + 0.06))


def test_staged_parallelism_beyond_the_slots_brings_nothing() -> None:
    model = Staged()
    few, many = dict.fromkeys(BUSY, 4), dict.fromkeys(BUSY, 400)
    assert model.utilisation(BUSY, few, 4) == model.utilisation(BUSY, many, 4)


def test_the_smallest_parallelism_meets_the_target_exactly() -> None:
    assert Pipelined().parallelism_for(BUSY, 0.5) == {"lines": 1, "split": 3, "count": 6}
    # 5 busy slots in the 0.75 - 3 * 0.5/10 = 0.6 of the interval that is left
    assert Staged(10.0, 0.5).parallelism_for(BUSY, 0.75) == dict.fromkeys(BUSY, 9)


def test_no_load_needs_one_instance_of_each() -> None:
    for model in MODELS:
        assert model.parallelism_for(dict.fromkeys(BUSY, 0.0), 0.8) == dict.fromkeys(BUSY, 1)


def test_where_overheads_alone_fill_the_interval_more_slots_cannot_help() -> None:
    assert Staged(1.0, 0.5).parallelism_for(BUSY, 0.8) == dict.fromkeys(BUSY, 1)


def test_slots_are_one_per_instance_or_those_of_the_widest_stage() -> None:
    parallelism = {"lines": 1, "split": 4, "count": 2}
    assert [model.slots_for(parallelism) for model in MODELS] == [7, 7, 4]


def test_only_storm_may_share_slots() -> None:
    assert [model.oversubscribes for model in MODELS] == [False, True, False]
    assert [model.name for model in MODELS] == ["pipelined", "storm", "staged"]


def test_rounding_up_forgives_floating_point_dust() -> None:
    assert [ceil(value) for value in (0.0, 0.3 / 0.1, 3.0000000001, 3.001, 2.999)] == [0, 3, 3, 4, 3]


def test_tasks_that_share_a_node_are_worth_its_slots_and_alone_they_are_worth_more() -> None:
    model = Staged(10.0, 0.0, node_slots=2, alone=2.0)
    nodes = {
        tasks: [4 / model.utilisation({"a": 4.0}, {"a": tasks}, 2 * n)["a"] for n in (1, 2, 3, 4)]
        for tasks in (1, 4, 6)
    }
    assert nodes[1] == [2, 2, 2, 2]
    assert nodes[4] == [2, 4, 4, 8]
    assert nodes[6] == [2, 4, 6, 6]  # on four nodes two have two, as on three


def test_with_a_core_for_every_slot_a_task_is_worth_a_slot() -> None:
    model = Staged(10.0, 0.0, node_slots=2)
    for tasks in (1, 2, 4):
        assert model.utilisation({"a": 4.0}, {"a": tasks}, 8)["a"] == pytest.approx(4.0 / tasks)


def test_a_pinned_operator_that_needs_all_the_time_itself_asks_for_what_it_can_use() -> None:
    model = Staged(10.0, 0.0, pinned={"count": 2}, node_slots=2, alone=2.0)
    # Alone on two nodes count takes 3 / 4. The others may take a fifth of that besides: 2 / 14.
    for target in (0.6, 0.8):
        assert model.parallelism_for(BUSY, target) == {"lines": 14, "split": 14, "count": 2}


@given(
    st.floats(0, 50),
    st.floats(0, 50),
    st.integers(1, 20),
    st.integers(0, 4),
    st.floats(1, 4),
    st.floats(1, 3),
)
def test_with_pinned_operators_more_load_never_needs_fewer_slots_nor_endless_ones(
    free: float, fixed: float, tasks: int, node_slots: int, alone: float, more: float
) -> None:
    model = Staged(10.0, 0.1, pinned={"b": tasks}, node_slots=node_slots, alone=min(alone, node_slots or 1))
    before = model.parallelism_for({"a": free, "b": fixed}, 0.8)
    after = model.parallelism_for({"a": free * more, "b": fixed * more}, 0.8)
    assert before["a"] <= after["a"]
    assert before["b"] == after["b"] == tasks
    slots = ceil(before["a"] / max(1, node_slots)) * max(1, node_slots)
    reached = model.utilisation({"a": free, "b": fixed}, before, slots)["a"]
    best = fixed / tasks / model.alone
    assert reached <= max(0.8, 1.2 * best + 0.02) + 1e-6


@given(st.lists(st.floats(0, 50), min_size=3, max_size=3), st.floats(0.2, 1.0), st.sampled_from(MODELS))
def test_the_parallelism_for_a_target_reaches_it(
    work: list[float], target: float, model: ExecutionModel
) -> None:
    busy = dict(zip(BUSY, work, strict=True))
    chosen = model.parallelism_for(busy, target)
    used = model.utilisation(busy, chosen, model.slots_for(chosen))
    assert max(used.values()) <= target + 1e-6


ALL = [*MODELS, FixedTasks(10.0, 0.1, dict.fromkeys(BUSY, 8), node_slots=2)]


@pytest.mark.parametrize("model", ALL, ids=lambda model: type(model).__name__)
def test_a_parallelism_that_a_model_asks_for_is_a_whole_number_of_its_steps(model: ExecutionModel) -> None:
    wanted = model.parallelism_for(BUSY, 0.8)
    assert {name: model.whole_steps(count) for name, count in wanted.items()} == wanted
    assert model.slots_for(wanted) >= max(wanted.values())


def test_only_where_an_instance_holds_a_slot_does_it_need_one_to_run() -> None:
    parallelism = {"lines": 1, "split": 2, "count": 2}
    assert [model.slots_required(parallelism) for model in ALL] == [5, 0, 0, 0]


def test_only_where_stages_take_turns_do_tasks_beyond_the_slots_bring_nothing_and_fewer_waste_them() -> None:
    assert [model.useful(9, 4) for model in ALL] == [9, 9, 4, 4]
    assert [model.filling({"lines": 1, "split": 6}, 4)["lines"] for model in ALL] == [1, 1, 4, 4]
    assert [model.filling({"lines": 1, "split": 6}, 4)["split"] for model in ALL] == [6, 6, 6, 6]


def test_where_every_operator_is_pinned_instances_come_by_the_node() -> None:
    fixed = FixedTasks(10.0, 0.0, {"a": 4, "b": 200}, node_slots=2)
    assert fixed.parallelism_for({"a": 2.0, "b": 2.0}, 0.8) == {"a": 8, "b": 8}
    assert (fixed.step, fixed.whole_steps(3), fixed.slots_for({"a": 4, "b": 7})) == (2, 4, 8)


def test_state_partitions_take_turns_on_the_slots_beside_the_rows() -> None:
    model = Staged(10.0, 0.0, {"count": 200}, partition_seconds={"count": 0.1})
    few, many = ({**dict.fromkeys(BUSY, 4), "count": count} for count in (4, 200))
    used = [model.utilisation(BUSY, counts, 4)["count"] for counts in (few, many)]
    assert used == pytest.approx([5 / 4 + 0.1 / 10, 5 / 4 + 50 * 0.1 / 10])


def test_more_slots_are_asked_for_where_state_partitions_fill_the_interval() -> None:
    without, model = (
        FixedTasks(3.0, 0.0, {"a": 2, "b": 200}, partition_seconds=costs) for costs in ({}, {"b": 0.05})
    )
    assert without.parallelism_for({"a": 0.1, "b": 0.1}, 0.8) == {"a": 1, "b": 1}
    slots = model.parallelism_for({"a": 0.1, "b": 0.1}, 0.8)["a"]
    assert model.utilisation({"a": 0.1, "b": 0.1}, {}, slots)["a"] <= 0.8
    assert model.utilisation({"a": 0.1, "b": 0.1}, {}, slots - 1)["a"] > 0.8


@given(
    st.floats(0, 20), st.floats(0, 2), st.integers(1, 400), st.integers(0, 4), st.floats(1, 4), st.booleans()
)
def test_with_state_partitions_neither_endless_slots_are_asked_for_nor_the_target_missed_without_need(
    work: float, cost: float, tasks: int, node_slots: int, alone: float, pinned: bool
) -> None:
    fixed = {"b": tasks} if pinned else {}
    model = Staged(10.0, 0.1, fixed, (), node_slots, min(alone, node_slots or 1), {"b": cost})
    busy = {"a": work, "b": 0.1}
    chosen = model.parallelism_for(busy, 0.8)
    slots = ceil(chosen["a"] / max(1, node_slots)) * max(1, node_slots)
    floor = 0.1 / (tasks if pinned else 1) + cost / 10
    assert model.utilisation(busy, chosen, slots)["a"] <= max(0.8, 0.02 + 1.2 * floor + 1e-6)


def test_a_query_without_rows_pays_for_no_partitions() -> None:
    apart = (frozenset({"lines", "split"}), frozenset({"count"}))
    model = Staged(10.0, 0.0, {"count": 200}, apart, partition_seconds={"count": 0.1})
    quiet = {"lines": 1.0, "split": 0.0, "count": 0.0}
    assert model.utilisation(quiet, {"lines": 4, "split": 4, "count": 200}, 4)["count"] == 0.25


def test_an_operator_that_waits_is_no_faster_alone_on_its_node() -> None:
    asking = Staged(10, 0.0, node_slots=4, alone=4.0, waits={"ask": 1.0})
    used = [asking.utilisation({"ask": 0.9}, {"ask": tasks}, slots=4)["ask"] for tasks in (1, 2)]
    assert used == [0.9, 0.45]
    computing = Staged(10, 0.0, node_slots=4, alone=4.0)
    assert computing.utilisation({"ask": 0.9}, {"ask": 1}, slots=4)["ask"] == 0.9 / 4


def test_a_pinned_operator_that_waits_takes_its_time_on_any_number_of_slots() -> None:
    asking = Staged(10, 0.0, pinned={"ask": 1}, node_slots=4, alone=4.0, waits={"ask": 1.0})
    assert asking.utilisation({"ask": 0.5, "sum": 0.0}, {"ask": 1, "sum": 1}, slots=8)["sum"] == 0.5
