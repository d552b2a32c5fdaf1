"""Late batches on full nodes are overload; anything less, or unknown, is not."""

from typing import Any

import pytest

from rheostat.analyze.overload import Overload, overload
from rheostat.model.decision import Cause
from rheostat.model.observation import ApplicationMeasures, NodeMeasures, Observation

RUNNING = ApplicationMeasures(trigger_seconds=3.0, running_seconds=31.0, tasks_done=12, tasks_left=188)


def node(name: str = "n1", cpu: float | None = 0.97, **measures: Any) -> NodeMeasures:
    return NodeMeasures(name, slots=2, cores=1.0, cpu=cpu, **measures)


def seen(application: ApplicationMeasures, *nodes: NodeMeasures) -> Overload | None:
    return overload(Observation(0.0, 10.0, {}, nodes or (node(),), application))


def late(count: int, **measures: Any) -> ApplicationMeasures:
    return ApplicationMeasures(trigger_seconds=3.0, late_batches=count, **measures)


def test_a_batch_that_runs_over_its_trigger_on_a_full_node_is_overload() -> None:
    assert seen(RUNNING) == Overload(
        words="nodes are above 0.9 CPU and the running batch has taken 31 s of a 3 s trigger, "
        "12 of 200 tasks done",
        causes=(
            Cause("CPU", "n1", 0.97, ">", 0.9),
            Cause("seconds of the running batch", "application", 31.0, ">", 3.0),
            Cause("late batches in a row", "application", 1.0, ">=", 1.0),
        ),
        cpu=True,
        memory=False,
    )


def test_finished_batches_that_were_late_are_overload_too() -> None:
    one, two = seen(late(1)), seen(late(2))
    assert one is not None and two is not None
    assert one.words == "nodes are above 0.9 CPU and the last batch was late for a 3 s trigger"
    assert two.words == ("nodes are above 0.9 CPU and 2 batches in a row were late for a 3 s trigger")
    assert two.causes[-1] == Cause("late batches in a row", "application", 2.0, ">=", 1.0)


@pytest.mark.parametrize(
    "application",
    [
        ApplicationMeasures(),
        ApplicationMeasures(trigger_seconds=3.0, running_seconds=3.0, late_batches=0),
        ApplicationMeasures(running_seconds=50.0),  # a trigger as soon as possible is never missed
        ApplicationMeasures(trigger_seconds=0.0, running_seconds=50.0),
        ApplicationMeasures(trigger_seconds=3.0, batch_seconds=9.0),  # of batches that may be long gone
    ],
)
def test_without_a_late_batch_full_nodes_are_only_well_used(application: ApplicationMeasures) -> None:
    assert seen(application) is None


@pytest.mark.parametrize("cpu", [None, 0.0, 0.9])
def test_a_late_batch_on_nodes_with_cpu_to_spare_or_of_unknown_cpu_is_not_overload(
    cpu: float | None,
) -> None:
    assert seen(RUNNING, node(cpu=cpu)) is None


def test_without_nodes_there_is_no_overload() -> None:
    assert overload(Observation(0.0, 10.0, {}, (), RUNNING)) is None


def test_one_hot_node_of_ten_is_skew_and_ten_hot_nodes_are_overload() -> None:
    cool = [node(f"n{number}", 0.5) for number in range(2, 11)]
    assert seen(RUNNING, node(cpu=1.0), *cool) is None
    hot = seen(RUNNING, *(node(f"n{number}", 0.95) for number in range(10)))
    assert hot is not None
    assert hot.causes[0].subject == "nodes"
    assert hot.causes[0].value == pytest.approx(0.95)


def test_a_large_node_counts_for_more_and_one_of_unknown_cpu_as_idle() -> None:
    large = NodeMeasures("large", slots=16, cores=16.0, cpu=0.99)
    assert seen(RUNNING, large, node("n2", 0.1)) is not None
    assert seen(RUNNING, node(), node("n2", None)) is None


@pytest.mark.parametrize("what", ["memory", "heap"])
def test_memory_above_the_limit_on_any_node_is_overload_whatever_its_cpu(what: str) -> None:
    full = seen(late(2), node("n1", 0.2, **{what: 0.95}), node("n2", None, memory=0.3))
    assert full is not None
    assert (full.cpu, full.memory) == (False, True)
    assert full.causes[0] == Cause(what, "n1", 0.95, ">", 0.9)
    assert full.words.startswith(f"nodes are above 0.9 {what} and")
    both = seen(late(1), node("n1", 0.97, **{what: 0.95}))
    assert both is not None
    assert (both.cpu, both.memory) == (True, True)
    assert both.words.startswith(f"nodes are above 0.9 CPU and {what} and")


@pytest.mark.parametrize("what", ["memory", "heap"])
def test_one_late_batch_is_no_overload_where_only_memory_is_full(what: str) -> None:
    a_little = late(1, batch_seconds=3.14)
    assert seen(a_little, node("n1", 0.3, **{what: 0.95})) is None
    assert seen(a_little, node("n1", 0.97, **{what: 0.95})) is not None


def test_full_memory_asks_for_one_node_at_a_time() -> None:
    slow = late(9, running_seconds=6.0, tasks_done=50, tasks_left=150)
    full = seen(slow, node(cpu=0.3, memory=0.95))
    assert full is not None and full.growth == 1.0


def test_the_first_late_batch_of_a_cold_jvm_is_not_overload_and_the_second_is() -> None:
    cold = node(compiling=0.5)
    assert seen(late(1, running_seconds=40.0), cold) is None
    assert seen(late(2, running_seconds=5.0), cold) is not None
    assert seen(late(1), node(compiling=0.3)) is not None
    assert seen(late(1), node(compiling=None)) is not None


def test_one_cold_node_explains_one_late_batch_of_all() -> None:
    assert seen(late(1), node("n1", 0.97, compiling=0.02), node("n2", 0.97, compiling=0.6)) is None


def test_from_the_second_late_batch_on_the_running_one_shows_how_much_is_needed() -> None:
    tasks = {"running_seconds": 6.0, "tasks_done": 50, "tasks_left": 150}

    def growth(count: int, compiling: float = 0.0, **changed: Any) -> float:
        found = seen(late(count, **{**tasks, **changed}), node(compiling=compiling))
        assert found is not None
        return found.growth

    assert growth(2) == pytest.approx(8.0)  # 24 s of a 3 s trigger
    assert growth(1) == growth(2, compiling=0.5) == 1.0
    assert growth(2, tasks_done=0) == growth(2, tasks_left=None) == 1.0
    assert growth(2, running_seconds=1.0, tasks_left=0) == 1.0


def test_every_cause_holds() -> None:
    found = seen(late(3, running_seconds=9.0), node(memory=0.99, heap=0.91))
    assert found is not None
    assert len(found.causes) == 5
    assert all(cause.holds() for cause in found.causes)


@pytest.mark.parametrize(
    ("memory", "heap", "words"),
    [
        (0.95, 0.5, "above 0.9 memory (state holds 300 MB) and"),
        (0.95, 0.95, "above 0.9 memory (state holds 300 MB) and"),
        (0.5, 0.95, "above 0.9 heap and"),
    ],
)
def test_it_says_which_memory_is_full(memory: float, heap: float, words: str) -> None:
    late = ApplicationMeasures(trigger_seconds=3.0, late_batches=2, state_memory_bytes=300 * 2**20)
    node = NodeMeasures("n1", 2, 1.0, cpu=0.5, memory=memory, heap=heap)
    found = overload(Observation(0.0, 10.0, {}, (node,), late))
    assert found is not None and words in found.words


def of_two(quick: ApplicationMeasures, rare: ApplicationMeasures, application: ApplicationMeasures) -> Any:
    queries = {"quick": quick, "rare": rare}
    return overload(Observation(0.0, 10.0, {}, (node(cpu=0.95),), application, queries=queries))


def test_a_query_in_time_is_not_late_by_the_trigger_of_another() -> None:
    quick = ApplicationMeasures(trigger_seconds=3.0, running_seconds=1.0, late_batches=0)
    rare = ApplicationMeasures(trigger_seconds=60.0, running_seconds=25.0, late_batches=0)
    mixed = ApplicationMeasures(trigger_seconds=3.0, running_seconds=25.0, late_batches=0)
    assert of_two(quick, rare, mixed) is None


def test_a_late_query_is_overload_whatever_the_trigger_of_another() -> None:
    quick = ApplicationMeasures(trigger_seconds=3.0, running_seconds=8.0, late_batches=1)
    rare = ApplicationMeasures(trigger_seconds=60.0, running_seconds=25.0, late_batches=0)
    mixed = ApplicationMeasures(trigger_seconds=60.0, running_seconds=8.0, late_batches=0)
    found = of_two(quick, rare, mixed)
    assert (
        found.words == "nodes are above 0.9 CPU and the running batch of quick has taken 8 s of a 3 s trigger"
    )
    assert found.causes[1] == Cause("seconds of the running batch", "quick", 8.0, ">", 3.0)


def test_of_late_queries_the_one_that_needs_most_speaks() -> None:
    def late_by(seconds: float, trigger: float) -> ApplicationMeasures:
        return ApplicationMeasures(
            trigger_seconds=trigger, running_seconds=seconds, tasks_done=10, tasks_left=10, late_batches=2
        )

    found = of_two(late_by(6.0, 3.0), late_by(70.0, 60.0), ApplicationMeasures())
    assert (found.causes[1].subject, found.growth) == ("quick", 4.0)
