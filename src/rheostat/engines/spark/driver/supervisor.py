"""Keeps one streaming query running: starts it, restarts it when it dies, stops it between batches."""

import time
from collections.abc import Callable, Mapping
from threading import Event, RLock
from typing import Any, Protocol

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from rheostat.engines.spark.driver import stages
from rheostat.engines.spark.driver.arrivals import FIRST_BACKOFF_SECONDS, LONGEST_BACKOFF_SECONDS, Arrivals
from rheostat.engines.spark.driver.boundary import stop_between_batches
from rheostat.engines.spark.driver.checkpoint import Checkpoint
from rheostat.engines.spark.driver.error_text import plain
from rheostat.engines.spark.driver.session import Session
from rheostat.engines.spark.protocol import Arrival, QueryStatus, RunningBatch
from rheostat.engines.spark.spec import SHUFFLE_PARTITIONS
from rheostat.model.errors import RheostatError

HEALTHY_SECONDS = 60.0  # a query that ran this long resets the back-off
START_ATTEMPTS = 3  # of a sole query that never finished a batch


class DriverContext(Protocol):
    """The parts of the driver process that a supervisor needs."""

    session: Session

    @property
    def stopping(self) -> Event:
        """Set when the application is being stopped."""

    def is_over(self) -> bool:
        """Whether Spark itself is stopped."""

    def has_ended(self, seconds: float) -> bool:
        """Wait for so long; whether the application is being stopped, or Spark is."""

    def note(self, kind: str, text: str) -> None:
        """Record an event for the controller."""


class Supervisor:
    """One query of an application, named, with its own checkpoint."""

    def __init__(
        self,
        context: DriverContext,
        name: str,
        title: str,
        checkpoint: str,
        trigger: dict[str, str],
        write: Callable[[], Any],
        state_partitions: int | None,
    ) -> None:
        self._context, self.name, self._trigger, self._write = context, name, trigger, write
        self._title = title  # its name in Spark
        self.checkpoint = Checkpoint(context.session.spark, checkpoint)
        self.state_partitions = state_partitions  # None: it is stateless
        self.query: StreamingQuery | None = None
        self.lock = RLock()  # held while the query is being replaced
        self.alone = True  # if not, a query that fails to start must not end the others
        self._arrivals = Arrivals(name, context.note)
        self._stages: tuple[str, list[stages.Stage]] | None = None

    def start(self, once: bool = False) -> None:
        """Start the query from its checkpoint; `once` for a single batch."""
        spark = self._context.session.spark
        if self.state_partitions:
            spark.conf.set(SHUFFLE_PARTITIONS, str(self.state_partitions))
        writer = self._write().queryName(self._title).option("checkpointLocation", self.checkpoint.location)
        trigger: dict[str, Any] = {"once": True} if once else self._trigger
        self.query = writer.trigger(**trigger).start()

    def supervise(self) -> None:
        """Wait until the query ends; if it died, restart it, after a longer wait each time."""
        backoff, attempts, worked = FIRST_BACKOFF_SECONDS, 0, False
        while True:
            query, began = self.query, time.monotonic()
            why = _wait(query)
            worked = worked or _has_finished_a_batch(query)
            with self.lock:
                if self.query is not query:
                    continue  # it was replaced
                if self._context.stopping.is_set() or why is None:
                    return
            attempts += 1
            if self._context.is_over():
                raise RheostatError(f"Spark stopped: {why}")
            if self.alone and attempts >= START_ATTEMPTS and not worked:
                raise RheostatError(f"the query failed to start: {why}")
            if time.monotonic() - began > HEALTHY_SECONDS:
                backoff = FIRST_BACKOFF_SECONDS
            backoff = self._restart(why, backoff)

    def _restart(self, why: str | None, backoff: float) -> float:
        """Restart a query that died, after the back-off; return the next back-off."""
        who = "" if self.alone else f"{self.name} "
        while why is not None:
            self._context.note("query", f"{who}died: {why}; restarting in {backoff:g} s")
            self._context.stopping.wait(backoff)
            backoff = min(LONGEST_BACKOFF_SECONDS, 2 * backoff)
            with self.lock:
                if self._context.stopping.is_set():
                    return backoff
                why = self._try_to_start()
        return backoff

    def _try_to_start(self) -> str | None:
        """Start the query; if that fails, return the reason, as it may succeed later."""
        try:
            self.start()
        except Exception as error:
            if self._context.is_over():
                raise
            return plain(error)
        return None

    def count(self, arrived: Callable[[], float]) -> None:
        """Sample the rows that the source was offered so far, if its own offsets do not show them."""
        self._arrivals.start(arrived, self._context.has_ended)

    def stop(self) -> None:
        """Stop the query between two batches."""
        with self.lock:
            if self.query is not None:
                stop_between_batches(self.query, _seconds(self._trigger))

    def describe(self, running: Mapping[str, RunningBatch]) -> QueryStatus:
        """The status of the query; `running` has the batches that run, by the id of their query."""
        return self._status(running, self._arrivals.peek())

    def report(self, running: Mapping[str, RunningBatch]) -> QueryStatus:
        """The status of the query, with the arrivals since the last report."""
        return self._status(running, self._arrivals.take())

    def _status(self, running: Mapping[str, RunningBatch], arrived: tuple[Arrival, ...]) -> QueryStatus:
        query = self.query
        known = None if query is None else str(query.id)
        return QueryStatus(
            self.name,
            id=known,
            run=None if query is None else str(query.runId),
            busy=query is not None and bool(query.status["isTriggerActive"]),
            stages=tuple(stage.described for stage in self.stages()),
            arrived=arrived,
            trigger_seconds=_seconds(self._trigger),
            running=running.get(known or ""),
        )

    def stages(self) -> list[stages.Stage]:
        """The query's stages, read only once per run: a rebalance does not change them."""
        query: Any = self.query
        if query is None:
            self._stages = None
        elif self._stages is None or self._stages[0] != str(query.runId):
            execution = query._jsq.streamingQuery().lastExecution()
            read = None if execution is None else stages.read(execution.executedPlan())
            self._stages = None if read is None else (str(query.runId), read)
        return self._stages[1] if self._stages else []


def _seconds(trigger: dict[str, str]) -> float:
    return float(next(iter(trigger.values())).split()[0])


def _wait(query: StreamingQuery | None) -> str | None:
    """Wait until a query ends; return the reason in one line if it died."""
    if query is None:
        return None
    try:
        query.awaitTermination()
    except StreamingQueryException as error:
        return plain(error)
    return None


def _has_finished_a_batch(query: StreamingQuery | None) -> bool:
    return query is not None and query.lastProgress is not None
