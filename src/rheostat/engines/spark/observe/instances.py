"""What each instance of an operator did in a window: its node, its rows, its CPU. Pure: no clock.

Spark plans the tasks of each batch anew. The instance of an index is the task of that index in every batch:
it gets the same keys and holds the same state. Its node is where it ran last.
"""

from collections.abc import Mapping, Sequence

from rheostat.engines.spark.observe.batch_window import BatchWindow
from rheostat.engines.spark.observe.batches import StageRun, TaskRun
from rheostat.model.configuration import NodeKind
from rheostat.model.observation import InstanceMeasures, Measure

MOST_INSTANCES = 64  # that are told apart; more of them are tasks that take turns, and would fill the journal


def instances(
    window: BatchWindow,
    runs: Sequence[Sequence[StageRun]],
    received: Measure,
    processed: Measure,
    nodes: Mapping[str, str],
    kinds: Mapping[str, NodeKind],
) -> tuple[InstanceMeasures, ...]:
    """The instances of an operator with these rows; `runs` are those of its stages, per complete batch."""
    own = [batch[0] for batch in runs if batch]
    count = own[-1].tasks if own else 0
    alike = [run for run in own if run.tasks == len(run.each) == count]
    if not 0 < count <= MOST_INSTANCES or alike[-1:] != own[-1:]:
        return ()
    tasks = [task for run in alike for task in run.each]
    shares, idle = _shares(tasks, processed), _idle_seconds(window)
    waited = None if idle is None else idle * len(alike) / len(window.ran)
    cpu = _by_index(tasks, [task.cpu_seconds for task in tasks])
    held = _by_index(tasks, [task.held_seconds for task in tasks])
    measured = []
    for task in sorted(alike[-1].each, key=lambda task: task.partition):
        node, share = nodes.get(task.executor, "?"), shares.get(task.partition)
        could = None if waited is None else _cores(kinds.get(node)) * (held[task.partition] + waited)
        measured.append(
            InstanceMeasures(
                node,
                None if received is None or share is None else received * share,
                None if processed is None or share is None else processed * share,
                cpu[task.partition] / could if could else None,
            )
        )
    return tuple(measured)


def _cores(kind: NodeKind | None) -> float:
    """The most that an instance can use at once; 0: its node is not known."""
    return 0.0 if kind is None else min(1.0, kind.cores)


def _idle_seconds(window: BatchWindow) -> float | None:
    """For how long no batch ran: every instance could have worked then. None: one batch alone does not tell.

    While a batch runs, other stages have their turn, so there only the time in its slot counts: an instance
    that computes for all of that comes to 1 when batches follow each other without a pause.
    """
    first = window.batches[0].started if window.before is None else window.before.finished
    if window.before is None and len(window.batches) == 1 and not window.realtime:
        return None
    return max(0.0, window.batches[-1].finished - first - sum(batch.seconds for batch in window.ran))


def _shares(tasks: Sequence[TaskRun], processed: Measure) -> dict[int, float]:
    """The part of the operator's rows that each index had: by what it read, else by what left it."""
    rows = _by_index(tasks, [task.rows for task in tasks])
    counts = [task.counted for task in tasks if task.counted is not None]
    if not sum(rows.values()) and len(counts) == len(tasks):
        rows = _by_index(tasks, counts)
    total = sum(rows.values())
    if not total:  # without rows in all nobody had any; else it is not known who had them
        return dict.fromkeys(rows, 0.0) if processed == 0 else {}
    return {index: count / total for index, count in rows.items()}


def _by_index(tasks: Sequence[TaskRun], rows: Sequence[float]) -> dict[int, float]:
    sums: dict[int, float] = {}
    for task, count in zip(tasks, rows, strict=True):
        sums[task.partition] = sums.get(task.partition, 0.0) + count
    return sums
