"""What the state partitions of a query cost in each batch, rows or not. Pure: no clock.

A task of a stateful stage opens the state of its partition, commits it and has it uploaded, whether it got
rows or not. Spark says how long the rows themselves took (`allUpdatesTimeMs`); the rest of the time for which
the task held its slot is the partition's.
"""

from collections.abc import Sequence
from dataclasses import replace

from rheostat.engines.spark.observe.batches import Batch, StageRun
from rheostat.engines.spark.protocol import QueryStage


def with_partition_costs(batch: Batch, stages: Sequence[QueryStage]) -> Batch:
    """The batch, in which stateful stages know what their partitions took, if the batch tells.

    They are busy from a task's launch to its end: what Spark needs for each task is a cost of the partition.
    """
    stateful = [index for index, stage in enumerate(stages) if stage.stateful]
    updates = _per_stage(batch.update_seconds, len(stateful))
    if batch.idle or batch.doubt or not updates or len(batch.stages) != len(stages):
        return batch
    row_seconds = dict(zip(stateful, updates, strict=True))
    runs = [
        _stateful(run, row_seconds[index]) if index in row_seconds else run
        for index, run in enumerate(batch.stages)
    ]
    return replace(batch, stages=tuple(runs))


def partitions(runs: Sequence[StageRun]) -> int | None:
    """The state partitions of an operator that has these stages; None: it has no state, or it is unknown."""
    return next((run.tasks for run in runs if run.state_seconds is not None), None)


def partition_seconds(runs: Sequence[StageRun]) -> float | None:
    """For how long each of them held a slot, rows apart."""
    count = partitions(runs)
    return sum(run.state_seconds or 0.0 for run in runs) / count if count else None


def _stateful(run: StageRun, row_seconds: float) -> StageRun:
    held = run.held_seconds
    return replace(run, busy_seconds=held, state_seconds=max(0.0, held - row_seconds))


def _per_stage(updates: Sequence[float], stages: int) -> Sequence[float]:
    """What rows took in each stateful stage; operators that share a stage cannot be told apart.

    >>> _per_stage((1.0, 2.0), 2), _per_stage((1.0, 2.0, 3.0), 2), _per_stage((), 2), _per_stage((1.0,), 0)
    ((1.0, 2.0), (3.0, 3.0), (), ())
    """
    if len(updates) == stages:
        return updates
    if not updates or not stages:  # the plan of a query that was just restarted is not known yet
        return ()
    return (sum(updates) / stages,) * stages
