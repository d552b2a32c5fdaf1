"""One query of a plain script: what its plan and its trigger say, from its start on."""

from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from rheostat.engines.spark.driver import stages
from rheostat.engines.spark.driver.stages import Stage
from rheostat.engines.spark.protocol import QueryStatus, RunningBatch
from rheostat.model.errors import UserError

_INTERVALS = {"ProcessingTimeTrigger": "intervalMs", "RealTimeTrigger": "batchDurationMs"}


class ScriptQuery:
    """A query, with the name under which it is measured."""

    def __init__(self, query: StreamingQuery, order: int) -> None:
        self.query = query
        self.id = str(query.id)
        self.label = query.name or f"query-{order}"
        # The operators of the first query keep short names; others carry the name of their query.
        self._prefix = "" if order == 1 else f"{self.label}."
        self._trigger = self._execution().trigger()
        self._read: tuple[str, int, list[Stage]] | None = None  # run, batch, stages

    @property
    def is_active(self) -> bool:
        """Whether it still runs."""
        return self.query.isActive

    def describe(self, running: RunningBatch | None) -> QueryStatus:
        """Its status, for the controller."""
        return QueryStatus(
            self.label,
            id=self.id,
            run=str(self.query.runId),
            busy=bool(self.query.status["isTriggerActive"]),
            stages=tuple(stage.described for stage in self.stages()),
            trigger_seconds=self.trigger_seconds,
            running=running,
            checkpoint=self.checkpoint if any(stage.stateful for stage in self.stages()) else None,
        )

    @property
    def checkpoint(self) -> str | None:
        """Where its checkpoint is; None: it has a temporary one, which ends with it."""
        location = str(self._execution().resolvedCheckpointRoot())
        return None if location.rpartition("/")[2].startswith("temporary-") else location

    @property
    def trigger_seconds(self) -> float | None:
        """Seconds between its batches; None: they follow each other without a pause."""
        interval = _INTERVALS.get(self._trigger_name)
        return int(getattr(self._trigger, interval)()) / 1000 or None if interval else None

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

    @property
    def _trigger_name(self) -> str:
        return str(self._trigger.getClass().getSimpleName()).rstrip("$")

    def _execution(self) -> Any:
        wrapped: Any = self.query
        return wrapped._jsq.streamingQuery()
