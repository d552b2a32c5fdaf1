"""Stops a streaming query between two batches.

Spark's own `stop` interrupts the running batch. Some of its rows may already have reached a sink, and would
reach it again after a restart. So a query is stopped in the pause between two batches. If there is no pause,
because the query is behind or in Real-Time Mode, the running batch becomes its last.
"""

import contextlib
import time
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from rheostat.engines.spark.limits import LIMITS

PAUSE_SECONDS = 0.5  # a shorter pause is not enough to stop in
MOMENT_SECONDS = 0.03
STARVED_SECONDS = 3.0  # a busy machine keeps no thread from running for longer


def stop_between_batches(query: StreamingQuery, trigger_seconds: float) -> None:
    """Stop a query; a batch that does not end in time is interrupted."""
    until = time.monotonic() + LIMITS.batch_seconds
    while query.isActive and time.monotonic() < until:
        paused = _is_in_a_pause(query, trigger_seconds)
        if paused or _has_tasks(query):
            _begin_no_other(query)
            if not paused or _has_begun(query, trigger_seconds):
                _ends_within(query, until - time.monotonic())
            break
        time.sleep(0.02)
    query.stop()


def _has_begun(query: StreamingQuery, every: float) -> bool:
    """Whether a trigger had begun when the query was told to begin no further batch.

    Its thread may have been kept from running since, so that its status does not show it. If it really waits,
    it ends by itself at its next trigger, or still waits after a while, where an interrupt does no harm.
    """
    return not _ends_within(query, min(STARVED_SECONDS, every + 1.0)) and not _waits(query)


def _ends_within(query: StreamingQuery, seconds: float) -> bool:
    with contextlib.suppress(StreamingQueryException):  # it failed in the meantime
        return bool(query.awaitTermination(max(1, int(seconds))))
    return True


def _is_in_a_pause(query: StreamingQuery, every: float) -> bool:
    """Whether it is waiting and no batch is about to begin: batches begin at multiples of the interval."""
    if not _waits(query):
        return False
    time.sleep(MOMENT_SECONDS)  # back-to-back batches also leave a moment of waiting
    return _waits(query) and (not every or every - time.time() % every > min(PAUSE_SECONDS, every / 4))


def _waits(query: StreamingQuery) -> bool:
    status = query.status
    return not status["isTriggerActive"] and "Initializing" not in status["message"]


def _has_tasks(query: StreamingQuery) -> bool:
    """Whether a batch has been planned: making it the last one earlier would interrupt it."""
    jobs = _execution(query).sparkSession().sparkContext().statusTracker()
    numbers = jobs.getJobIdsForGroup(str(query.runId))
    jobs_of_query = (jobs.getJobInfo(number) for number in numbers)
    return any(job.isDefined() and str(job.get().status()) == "RUNNING" for job in jobs_of_query)


def _begin_no_other(query: StreamingQuery) -> None:
    """Do the first step of `stop`, without its interrupt: the running batch becomes the last."""
    execution = _execution(query)
    state = execution.state()
    loader = execution.getClass().getClassLoader()
    name = "org.apache.spark.sql.execution.streaming.runtime.TERMINATED$"
    state.set(loader.loadClass(name).getField("MODULE$").get(None))


def _execution(query: StreamingQuery) -> Any:
    wrapped: Any = query
    return wrapped._jsq.streamingQuery()
