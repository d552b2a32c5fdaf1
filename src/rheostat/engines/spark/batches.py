"""From what Spark's listeners say to batches as values. Pure: no Spark, no clock."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np

from rheostat.model.observation import Event

MOST_ARRIVALS = 1000


@dataclass(frozen=True, slots=True)
class StageRun:
    """One stage of one batch."""

    tasks: int
    cpu_seconds: float  # of its tasks and of the Python workers that served them
    busy_seconds: float  # its tasks' time without waiting for input
    each: tuple[tuple[str, float, float], ...]  # per task: executor, CPU seconds, rows
    parents: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch, from its trigger to its commit."""

    number: int
    started: float  # seconds since the run began
    finished: float
    input_rows: float
    backlog: float | None  # rows that its sources hold beyond it; None: they do not tell
    rows: Mapping[str, float]  # rows out of each operator
    stages: tuple[StageRun, ...]  # from the source up
    parts: Mapping[str, float]  # seconds of each part, by Spark's names
    state_rows: float | None = None
    state_bytes: float | None = None
    idle: bool = False  # nothing had arrived, so nothing ran

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.finished - self.started


@dataclass
class Ledger:
    """Puts the events of one application together to batches; keeps the stages of the open ones."""

    began_at: float  # unix seconds of the run's time 0
    source: str = ""  # whose rows are the input; where it counts none, Spark's own number is
    realtime: bool = False
    query: str | None = None  # the one query that is measured; None: the first that is heard of
    _arrived: list[tuple[float, float]] = field(
        default_factory=list
    )  # (when, rows so far), if the source tells
    _done: float = 0.0
    _stages: dict[int, dict[int, StageRun]] = field(default_factory=dict)  # batch -> stage id -> run

    def count_arrivals(self, samples: Sequence[Sequence[float]]) -> None:
        """Take what the source was offered by when; only the newest tells of batches to come."""
        self._arrived += [(ms / 1000 - self.began_at, rows) for ms, rows in samples]
        del self._arrived[:-MOST_ARRIVALS]

    def read(self, events: Sequence[Mapping[str, Any]]) -> tuple[list[Batch], list[Event]]:
        """Return the batches that ended, and whatever else is worth telling."""
        batches: list[Batch] = []
        told: list[Event] = []
        for event in events:
            kind = event.get("event")
            if kind == "stage":
                self._add_stage(event)
            elif kind == "progress":
                batch = self._batch(event["progress"])
                if batch is not None:
                    batches.append(batch)
            elif (text := _words(event)) is not None:
                at = event.get("at", 0) / 1000 - self.began_at
                told.append(Event(at, str(event.get("kind") or kind), text))
        return batches, told

    def _add_stage(self, event: Mapping[str, Any]) -> None:
        if self.query is None:
            self.query = event["query"]
        if event["query"] != self.query or event["failed"]:
            return
        runs = self._stages.setdefault(event["batch"], {})
        runs[event["id"]] = _plus(runs.get(event["id"]), _stage(event))

    def _batch(self, progress: Mapping[str, Any]) -> Batch | None:
        if self.query is None:
            self.query = progress["id"]
        if progress["id"] != self.query:
            return None
        number, parts = int(progress["batchId"]), progress.get("durationMs") or {}
        idle = "addBatch" not in parts
        runs = {} if idle else self._stages.pop(number, {})
        for old in [batch for batch in self._stages if batch < number]:
            del self._stages[old]
        started = datetime.fromisoformat(progress["timestamp"]).timestamp() - self.began_at
        seconds = float(parts.get("triggerExecution", progress.get("batchDuration", 0))) / 1000
        states = progress.get("stateOperators") or []
        observed = progress.get("observedMetrics") or {}
        rows = {name: float(row.get("rows") or 0) for name, row in observed.items()}
        input_rows = rows.get(self.source, float(progress.get("numInputRows") or 0))
        self._done += input_rows
        return Batch(
            number=number,
            started=started,
            finished=started + seconds,
            input_rows=input_rows,
            backlog=self._waiting(
                started + seconds if self.realtime else started, progress.get("sources") or []
            ),
            rows=rows,
            stages=tuple(runs[key] for key in _chain(runs)),
            parts={name: float(value) / 1000 for name, value in parts.items()},
            state_rows=sum(float(s.get("numRowsTotal") or 0) for s in states) if states else None,
            state_bytes=sum(_state_bytes(s) for s in states) if states else None,
            idle=idle,
        )

    def _waiting(self, at: float, sources: Sequence[Mapping[str, Any]]) -> float | None:
        """Rows that the source holds beyond this batch: by what it was offered, or by its offsets."""
        if not self._arrived:
            return _backlog(sources)
        times, rows = zip(*self._arrived, strict=True)
        return max(0.0, float(np.interp(at, times, rows)) - self._done)


def _stage(event: Mapping[str, Any]) -> StageRun:
    each = tuple((str(who), cpu / 1e9, float(rows)) for who, cpu, rows in event["each"])
    return StageRun(
        tasks=int(event["tasks"]),
        cpu_seconds=event["cpu_ns"] / 1e9 + event["python_ms"] / 1e3,
        busy_seconds=max(0.0, event["run_ms"] - event["wait_ms"]) / 1e3,
        each=each,
        parents=tuple(event["parents"]),
    )


def _chain(runs: Mapping[int, StageRun]) -> list[int]:
    """The stages of the batch's last job, lowest first; what was broadcast beforehand is no operator."""
    found: set[int] = set()
    todo = [max(runs)] if runs else []
    while todo:
        stage = todo.pop()
        if stage in runs and stage not in found:
            found.add(stage)
            todo += runs[stage].parents
    return sorted(found)


def _plus(first: StageRun | None, second: StageRun) -> StageRun:
    """A stage that ran twice, as an executor was lost, cost both; its instances are those of the last."""
    if first is None:
        return second
    return StageRun(
        second.tasks,
        first.cpu_seconds + second.cpu_seconds,
        first.busy_seconds + second.busy_seconds,
        second.each,
        second.parents,
    )


def _state_bytes(operator: Mapping[str, Any]) -> float:
    """RocksDB's files where they are told, else what the provider says it holds in memory."""
    custom = operator.get("customMetrics") or {}
    return float(custom.get("rocksdbSstFileSize") or operator.get("memoryUsedBytes") or 0)


def _backlog(sources: Sequence[Mapping[str, Any]]) -> float | None:
    """Rows that the sources hold beyond this batch, where their offsets count rows."""
    waiting = 0.0
    for source in sources:
        end, latest = _count(source.get("endOffset")), _count(source.get("latestOffset"))
        if end is None or latest is None:
            return None
        waiting += max(0.0, latest - end)
    return waiting if sources else None


def _count(offset: Any) -> float | None:
    """The rows that an offset counts: a Kafka topic's per partition, or one number under a name."""
    if isinstance(offset, str):
        try:
            offset = json.loads(offset)
        except ValueError:
            return None
    if not isinstance(offset, dict):
        return None  # a bare number may be anything: the rate source counts seconds
    total = 0.0
    for value in offset.values():
        if isinstance(value, bool):
            return None
        part = float(value) if isinstance(value, int | float) else _count(value)
        if part is None or not math.isfinite(part):
            return None
        total += part
    return total


def _words(event: Mapping[str, Any]) -> str | None:
    kind = event.get("event")
    if kind == "note":
        return str(event["text"])
    if kind == "executor added":
        return f"executor {event['id']} registered with {event['slots']} slots"
    if kind == "executor removed":
        return f"executor {event['id']} is gone: {event['reason']}"
    if kind == "query started":
        return f"query {event.get('name') or ''} started, run {event['run']}".replace("  ", " ")
    if kind == "query ended":
        reason = event.get("reason")
        return "query ended" + (
            f": {' '.join(reason.split()).partition(' SQLSTATE')[0][:200]}" if reason else ""
        )
    return None
