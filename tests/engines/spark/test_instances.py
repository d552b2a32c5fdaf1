"""What each instance of an operator did: made-up batches with exact answers."""

from collections.abc import Sequence

import pytest

from rheostat.engines.spark.observe.batch_window import BatchWindow
from rheostat.engines.spark.observe.batches import Batch, StageRun, TaskRun
from rheostat.engines.spark.observe.instances import MOST_INSTANCES, instances
from rheostat.model.configuration import NodeKind
from rheostat.model.observation import InstanceMeasures

KINDS = {"small": NodeKind(cores=0.5, slots=2), "large": NodeKind(cores=4.0, slots=4)}
NODES = {"0": "small", "1": "large"}


def batch(number: int, started: float, *tasks: TaskRun) -> Batch:
    """One of 1 s with a single stage."""
    run = StageRun(len(tasks), sum(task.cpu_seconds for task in tasks), 0.0, tasks)
    return Batch(number, started, started + 1.0, 40.0, None, {}, (run,), {})


def measured(
    *batches: Batch, before: Batch | None = None, realtime: bool = False, rows: float | None = 80.0
) -> tuple[InstanceMeasures, ...]:
    window = BatchWindow(before, batches, realtime, 10.0)
    return instances(window, [list(each.stages) for each in window.ran], rows, rows, NODES, KINDS)


def utilisation(of: Sequence[InstanceMeasures]) -> list[float | None]:
    return [each.utilisation for each in of]


def test_an_instance_is_the_task_of_one_index_and_sits_where_it_ran_last() -> None:
    first = batch(1, 2.0, TaskRun("0", 0.1, 30, 0.2, partition=0), TaskRun("1", 0.3, 10, 0.3, partition=1))
    last = batch(2, 4.0, TaskRun("0", 0.3, 10, 0.3, partition=1), TaskRun("1", 0.1, 30, 0.2, partition=0))
    result = measured(first, last, before=batch(0, 0.0))
    assert [(each.node, each.received, each.processed) for each in result] == [
        ("large", 60.0, 60.0),
        ("small", 20.0, 20.0),
    ]


def test_an_instance_can_use_one_core_or_its_nodes_if_these_are_fewer() -> None:
    tasks = TaskRun("0", 0.5, 1, 1.0, partition=0), TaskRun("1", 0.5, 1, 1.0, partition=1)
    without_a_pause = measured(batch(1, 1.0, *tasks), before=batch(0, 0.0))
    assert utilisation(without_a_pause) == [1.0, 0.5]  # of half a core, of one


def test_between_batches_an_instance_could_have_worked_but_not_while_other_stages_did() -> None:
    task = TaskRun("1", 0.5, 1, 0.5)  # half of a batch that takes 1 s
    full, half = batch(1, 1.0, task), batch(1, 1.5, task)
    assert utilisation(measured(full, before=batch(0, 0.0))) == [1.0]
    assert utilisation(measured(half, before=batch(0, 0.0))) == [0.5]  # it had 0.5 s more
    assert utilisation(measured(full)) == [None]  # when the batch before it ended is not known


def test_where_a_shuffle_counts_no_records_an_instances_rows_are_those_that_left_it() -> None:
    tasks = TaskRun("0", 0.1, 0, 1.0, 0, counted=90), TaskRun("1", 0.3, 0, 1.0, 1, counted=30)
    live = measured(batch(1, 1.0, *tasks), before=batch(0, 0.0), realtime=True)
    assert [each.processed for each in live] == [60.0, 20.0]  # of the 80 rows that came in
    assert utilisation(live) == [0.2, 0.3]


@pytest.mark.parametrize(("rows", "known"), [(80.0, None), (0.0, 0.0), (None, None)])
def test_rows_that_nobody_counted_are_unknown_and_not_zero(rows: float | None, known: float | None) -> None:
    tasks = TaskRun("0", 0.1, 0, 1.0, 0), TaskRun("1", 0.3, 0, 1.0, 1, counted=30)
    live = measured(batch(1, 1.0, *tasks), before=batch(0, 0.0), realtime=True, rows=rows)
    assert [each.processed for each in live] == [known, None if known is None else known]
    dropped = measured(
        batch(1, 1.0, TaskRun("0", 0.1, 0, 1.0, 0, counted=0)), before=batch(0, 0.0), realtime=True
    )
    assert dropped[0].processed is None  # a filter let nothing through


def test_a_batch_that_lacks_tasks_shows_no_instances() -> None:
    run = StageRun(2, 0.1, 0.1, (TaskRun("0", 0.1, 30, 0.2),))
    lost = Batch(1, 1.0, 2.0, 40.0, None, {}, (run,), {})
    assert measured(lost, before=batch(0, 0.0)) == measured() == ()


def test_a_node_that_is_not_known_leaves_the_utilisation_unknown() -> None:
    result = measured(batch(1, 1.0, TaskRun("gone", 0.1, 30, 0.2)), before=batch(0, 0.0))
    assert [(each.node, each.processed, each.utilisation) for each in result] == [("?", 80.0, None)]


def test_tasks_that_take_turns_by_the_hundred_are_not_listed() -> None:
    tasks = [TaskRun("0", 0.1, 1, 0.1, index) for index in range(MOST_INSTANCES + 1)]
    assert measured(batch(1, 1.0, *tasks), before=batch(0, 0.0)) == ()
    assert len(measured(batch(1, 1.0, *tasks[1:]), before=batch(0, 0.0))) == MOST_INSTANCES
