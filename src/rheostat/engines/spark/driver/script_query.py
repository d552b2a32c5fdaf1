"""One query of a plain script: what its plan and its trigger say, from its start on."""

import time
from collections.abc import Container
from itertools import chain, count
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from rheostat.engines.spark.driver import stages
from rheostat.engines.spark.driver.batch_clock import BatchClock
from rheostat.engines.spark.driver.checkpoint import Checkpoint
from rheostat.engines.spark.driver.query_topics import subscription
from rheostat.engines.spark.driver.stages import Stage
from rheostat.engines.spark.protocol import Arrival, QueryStatus, RunningBatch
from rheostat.model.documents import storable
from rheostat.model.errors import UserError

_INTERVALS = {"ProcessingTimeTrigger": "intervalMs", "RealTimeTrigger": "batchDurationMs"}
MOST_LETTERS = 80  # of a label, which becomes part of operators' names


def label(name: str | None, order: int, taken: Container[str]) -> str:
    r"""What a query is called here: its queryName, as far as it can be shown, else its order; never twice.

    >>> label("totals", 2, {"totals"}), label(None, 3, ()), label("a\tb", 1, ())
    ('totals-2', 'query-3', 'a b')
    """
    shown = "".join(letter if letter.isprintable() else " " for letter in name or "").strip()
    wanted = shown[:MOST_LETTERS] or f"query-{order}"
    others = (f"{wanted}-{number}" for number in count(2))
    return next(candidate for candidate in chain([wanted], others) if candidate not in taken)


class ScriptQuery:
    """A query, with the name under which it is measured."""

    def __init__(self, query: StreamingQuery, label: str, prefix: str = "") -> None:
        """`prefix` stands before the names of its operators."""
        self.query, self.id, self.label = query, str(query.id), label
        self._prefix = prefix
        self._read: tuple[str, int, list[Stage]] | None = None  # run, batch, stages
        self._clock = BatchClock()

    @property
    def is_active(self) -> bool:
        """Whether it still runs."""
        return self.query.isActive

    def describe(self, running: RunningBatch | None, arrived: tuple[Arrival, ...] = ()) -> QueryStatus:
        """Its status, for the controller; `running` is the batch of which stages began."""
        status, run, now = self.query.status, str(self.query.runId), int(time.time() * 1000)
        return QueryStatus(
            self.label,
            id=self.id,
            run=run,
            busy=bool(status["isTriggerActive"]),
            stages=tuple(stage.described for stage in self.stages()),
            arrived=arrived,
            trigger_seconds=self.trigger_seconds,
            running=self._clock.read(run, str(status["message"]), self._planned(), running, now),
            sink=self.sink,
            checkpoint=self.checkpoint if any(stage.stateful for stage in self.stages()) else None,
        )

    @property
    def checkpoint(self) -> str | None:
        """Where its checkpoint is; None: it has a temporary one, which ends with it."""
        execution = self._execution()
        kind = execution.getClass()
        while kind.getSimpleName() != "StreamExecution":
            kind = kind.getSuperclass()
        temporary = kind.getDeclaredField("deleteCheckpointOnStop")  # private, and nothing else tells
        temporary.setAccessible(True)
        return None if temporary.getBoolean(execution) else str(execution.resolvedCheckpointRoot())

    @property
    def sink(self) -> str:
        """Where its rows go, as Spark calls it; a sink without a text has a name."""
        sink = self._execution().sink()
        text = str(sink.toString())
        return storable(str(sink.name()) if "@" in text and hasattr(sink, "name") else text)[:MOST_LETTERS]

    @property
    def trigger_seconds(self) -> float | None:
        """Seconds between its batches; None: they follow each other without a pause."""
        interval = _INTERVALS.get(self._trigger_name)
        return int(getattr(self._execution().trigger(), interval)()) / 1000 or None if interval else None

    @property
    def subscription(self) -> dict[str, str] | None:
        """The options of its Kafka source, if that is its only one and names its topics."""
        return subscription(self._execution().analyzedPlan())

    def refusal(self, mode: str) -> UserError | None:
        """Why it cannot be run in this mode, if it cannot."""
        name = self._trigger_name
        if name == "ContinuousTrigger":
            return UserError(
                f"query {self.label} uses continuous processing, which Rheostat does not scale: "
                'use trigger(processingTime="...") or trigger(realTime="...")'
            )
        if (name == "RealTimeTrigger") == (mode == "realtime"):
            return None
        if mode == "realtime":
            return UserError(
                f"query {self.label} runs in micro-batches: leave --mode realtime out, "
                'or give it trigger(realTime="5 seconds")'
            )
        return UserError(f"query {self.label} uses Real-Time Mode: add --mode realtime")

    def stages(self) -> list[Stage]:
        """Its stages, from the plan of a batch; none until its first batch is planned.

        A batch in which a source has no rows does not show its tasks: then the next one is read, too.
        """
        run, last = str(self.query.runId), self._read
        if last is not None and last[0] == run and all(stage.tasks != 0 for stage in last[2]):
            return last[2]
        execution = self._execution().lastExecution()
        if execution is None:
            return last[2] if last else []
        batch = int(execution.currentBatchId())
        if last is None or last[:2] != (run, batch):
            self._read = run, batch, stages.read(execution.executedPlan(), self._prefix)
        return self._read[2] if self._read else []

    def check_log(self, spark: SparkSession) -> None:
        """Raise an error that names the log of its checkpoint with which it begins, if that is broken."""
        if self.checkpoint is not None:
            Checkpoint(spark, self.checkpoint).check_log()

    def _planned(self) -> int:
        """The number of the batch that was planned last."""
        execution = self._execution().lastExecution()
        return -1 if execution is None else int(execution.currentBatchId())

    @property
    def _trigger_name(self) -> str:
        return str(self._execution().trigger().getClass().getSimpleName()).rstrip("$")

    def _execution(self) -> Any:
        wrapped: Any = self.query
        return wrapped._jsq.streamingQuery()
