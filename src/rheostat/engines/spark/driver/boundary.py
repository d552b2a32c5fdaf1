"""Ends a streaming query between two batches.

Spark's own `stop` interrupts the batch that runs. Some of its rows may have reached a sink already, and would
come again after a restart. So a query is stopped in the pause between two batches. Where it has none, because
it is behind or in Real-Time Mode, the batch that runs becomes its last.
"""

import contextlib
import time
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from rheostat.engines.spark.limits import LIMITS

PAUSE_SECONDS = 0.5  # to stop within
MOMENT_SECONDS = 0.03
SETTLE_SECONDS = 0.3  # until a trigger that had begun shows in the query's status


def stop_between_batches(query: StreamingQuery, trigger_seconds: float) -> None:
    """Stop a query; a batch that does not end in time is interrupted after all."""
    until = time.monotonic() + LIMITS.batch_seconds
    while query.isActive and time.monotonic() < until:
        paused = _is_in_a_pause(query, trigger_seconds)
        if paused or _has_tasks(query):
            _begin_no_other(query)
            if not paused or not _keeps_waiting(query):
                with contextlib.suppress(StreamingQueryException):  # it fails by itself meanwhile
                    query.awaitTermination(max(1, int(until - time.monotonic())))
            break
        time.sleep(0.02)
    query.stop()


def _is_in_a_pause(query: StreamingQuery, every: float) -> bool:
    """Whether it waits, and not for a batch that is about to begin: they do on multiples of the interval."""
    if not _waits(query):
        return False
    time.sleep(MOMENT_SECONDS)  # between two batches that follow each other at once it waits as well
    return _waits(query) and (not every or every - time.time() % every > min(PAUSE_SECONDS, every / 4))


def _keeps_waiting(query: StreamingQuery) -> bool:
    """Whether no trigger had begun when the query was told to begin no other.

    One that had may be planning its batch: it has logged its offsets and has no tasks yet.
    """
    until = time.monotonic() + SETTLE_SECONDS
    while time.monotonic() < until:
        if not _waits(query):
            return False
        time.sleep(0.02)
    return _waits(query)


def _waits(query: StreamingQuery) -> bool:
    status = query.status
    return not status["isTriggerActive"] and "Initializing" not in status["message"]


def _has_tasks(query: StreamingQuery) -> bool:
    """Whether a batch is past its planning: one that is told to be the last before would be interrupted."""
    jobs = _execution(query).sparkSession().sparkContext().statusTracker()
    numbers = jobs.getJobIdsForGroup(str(query.runId))
    found = (jobs.getJobInfo(number) for number in numbers)
    return any(one.isDefined() and str(one.get().status()) == "RUNNING" for one in found)


def _begin_no_other(query: StreamingQuery) -> None:
    """What `stop` does first, without its interrupt: a batch that runs becomes the last."""
    execution = _execution(query)
    state = execution.state()
    loader = execution.getClass().getClassLoader()
    name = "org.apache.spark.sql.execution.streaming.runtime.TERMINATED$"
    state.set(loader.loadClass(name).getField("MODULE$").get(None))


def _execution(query: StreamingQuery) -> Any:
    wrapped: Any = query
    return wrapped._jsq.streamingQuery()
