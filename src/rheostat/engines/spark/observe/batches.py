"""From what Spark's listeners say to batches as values. Pure: no Spark, no clock."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rheostat.engines.spark.observe import plausible
from rheostat.engines.spark.observe.plausible import AbsurdError, amount, count
from rheostat.model.documents import storable
from rheostat.model.observation import Event

MOST_ARRIVALS = 1000
MOST_WORK = 10.0  # of the time that its tasks had; a stage that says more counted wrongly
_ABSURD = (AbsurdError, AttributeError, KeyError, TypeError, ValueError, OverflowError, RecursionError)


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
    rows: Mapping[str, float]  # rows out of each operator, and "a to b" where b takes only some of a's
    stages: tuple[StageRun, ...]  # from the source up
    parts: Mapping[str, float]  # seconds of each part, by Spark's names
    state_rows: float | None = None
    state_bytes: float | None = None
    idle: bool = False  # nothing had arrived, so nothing ran
    query: str = ""  # the part of the application's graph that it belongs to
    doubt: str = ""  # what was absurd about it; then nothing is known but that it ended
    end: float | None = None  # where its source stands after it: rows of topics, seconds of the rate source
    run: str = ""  # of its query; another one begins with every restart

    def follows(self, before: "Batch") -> bool:
        """Whether no batch is missing between the two: in a restart, a rewrite of state counts as a batch."""
        uncounted = 0 if self.run == before.run else 1
        return self.idle or self.number <= before.number + 1 + uncounted

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
    query: str | None = None  # the id of the one query that is measured; None: the first that is heard of
    name: str = ""  # what that query is called
    _arrived: list[tuple[float, float]] = field(
        default_factory=list
    )  # (when, rows so far), if the source tells
    _done: float = 0.0
    _stages: dict[int, dict[int, StageRun]] = field(default_factory=dict)  # batch -> stage id -> run
    _last: Batch | None = None
    _position: float | None = None  # where a reader of Kafka stood after it
    _doubt: str = ""  # what was absurd since then

    def count_arrivals(self, samples: Sequence[Sequence[float]]) -> None:
        """Take what the source was offered by when; only the newest tells of batches to come."""
        for sample in samples:
            at, rows = _sample(sample) or (math.inf, 0.0)
            if at < math.inf and (not self._arrived or self._arrived[-1][0] <= at - self.began_at):
                if [before for _, before in self._arrived[-2:]] == [rows, rows]:
                    self._arrived.pop()  # two samples tell of a silence, however long
                self._arrived.append((at - self.began_at, rows))
        del self._arrived[:-MOST_ARRIVALS]

    @property
    def arrivals(self) -> list[tuple[float, float]]:
        """The latest of what the source was offered: when, and rows so far."""
        return list(self._arrived)

    def read(self, events: Sequence[Mapping[str, Any]]) -> tuple[list[Batch], list[Event]]:
        """Return the batches that ended, and whatever else is worth telling."""
        batches: list[Batch] = []
        told: list[Event] = []
        for event in events:
            try:
                kind = event.get("event")
                if kind == "stage":
                    self._add_stage(event)
                elif kind == "progress":
                    batch = self._ended(event["progress"])
                    if batch is not None:
                        batches.append(batch)
                elif kind == "idle":
                    batches += self._nothing(event)
                elif (text := _words(event)) is not None:
                    name = str(event.get("kind") or kind)
                    told.append(Event(self._when(event), storable(name), storable(text)))
            except _ABSURD as error:
                self._doubt = plausible.short(error)
        told += [
            Event(batch.finished, "absurd", f"batch {batch.number} is not judged: {batch.doubt}")
            for batch in batches
            if batch.doubt
        ]
        return batches, told

    def _add_stage(self, event: Mapping[str, Any]) -> None:
        if not self._is_ours(event, "query") or event["failed"]:
            return
        number, batch = count(event, "id", plausible.MOST_ID), count(event, "batch", plausible.MOST_ID)
        runs = self._stages.setdefault(batch, {})
        runs[number] = _plus(runs.get(number), _stage(event))

    def _is_ours(self, about: Mapping[str, Any], key: str) -> bool:
        name = plausible.name(about, key)
        if self.query is None:
            self.query = name
        return name == self.query

    def _ended(self, progress: Mapping[str, Any]) -> Batch | None:
        """The batch that a progress tells of, or, where it makes no sense, that there was one."""
        if not self._is_ours(progress, "id"):
            return None
        try:
            batch = self._batch(progress)
        except _ABSURD as error:
            self._doubt = plausible.short(error)
            number = plausible.counted(progress, "batchId", plausible.MOST_ID)
            if number is None:
                number = self._last.number + 1 if self._last else 0
            batch = Batch(number, self._latest, self._latest, 0.0, None, {}, (), {}, query=self.name)
        batch, self._doubt = replace(batch, doubt=self._doubt or _overworked(batch)), ""
        self._last = batch
        return batch

    def _nothing(self, event: Mapping[str, Any]) -> list[Batch]:
        """A trigger at which the source held nothing beyond the last batch: Spark runs none then.

        It also runs none where a user lets rows wait until there are enough of them; that is no silence.
        """
        if not self._is_ours(event, "query"):
            return []
        at = plausible.moment(event, "timestamp") - self.began_at
        last = self._last or Batch(-1, at, at, 0.0, 0.0, {}, (), {}, query=self.name)
        told = next((rows for when, rows in reversed(self._arrived) if when <= at), 0.0)
        if self._position is not None and told > self._position:
            return []
        nothing = replace(last, input_rows=0.0, backlog=0.0, rows={}, stages=(), parts={}, doubt="")
        return [replace(nothing, started=at, finished=at, idle=True)]

    def _batch(self, progress: Mapping[str, Any]) -> Batch:
        number, parts = (
            count(progress, "batchId", plausible.MOST_ID),
            plausible.mapping(progress, "durationMs"),
        )
        idle = "addBatch" not in parts
        runs = {} if idle else self._stages.pop(number, {})
        for old in [batch for batch in self._stages if batch < number]:
            del self._stages[old]
        started = plausible.moment(progress, "timestamp") - self.began_at
        whole = (parts, "triggerExecution") if "triggerExecution" in parts else (progress, "batchDuration")
        seconds = amount(*whole, plausible.MOST_MS) / 1000
        observed = plausible.mapping(progress, "observedMetrics")
        rows = {}
        for name in observed:
            for metric in plausible.mapping(observed, name):
                told = plausible.counted(plausible.mapping(observed, name), metric, plausible.MOST_ROWS)
                if told is not None:
                    rows[name if metric == "rows" else f"{name} {metric}"] = float(told)
        if self.source in rows:
            input_rows = rows[self.source]
        else:
            input_rows = float(count(progress, "numInputRows", plausible.MOST_ROWS))
        if idle and input_rows:
            raise AbsurdError(f"{input_rows:g} rows in no time")
        self._done += input_rows
        states = plausible.mappings(progress, "stateOperators")
        return Batch(
            number=number,
            started=started,
            finished=started + seconds,
            input_rows=input_rows,
            backlog=self._waiting(
                started + seconds if self.realtime else started, plausible.mappings(progress, "sources")
            ),
            rows=rows,
            stages=tuple(runs[key] for key in _chain(runs)),
            parts=_parts(parts),
            state_rows=_total(plausible.counted(s, "numRowsTotal", plausible.MOST_ROWS) for s in states),
            state_bytes=_total(_state_bytes(s) for s in states),
            idle=idle,
            query=self.name,
            end=_end(plausible.mappings(progress, "sources")),
            run=str(progress.get("runId", "")),
        )

    @property
    def _latest(self) -> float:
        """When the last batch ended."""
        return self._last.finished if self._last else 0.0

    def _when(self, event: Mapping[str, Any]) -> float:
        at = plausible.counted(event, "at", plausible.MOST_ID)
        return self._latest if at is None else at / 1000 - self.began_at

    def _waiting(self, at: float, sources: Sequence[Mapping[str, Any]]) -> float | None:
        """Rows that the source holds beyond this batch: by what it was offered, or by its offsets.

        Micro-batches of a source that is not Kafka take all that it has, and may count it otherwise.
        """
        position = self._position = _position(sources)
        if not self._arrived or (position is None and not self.realtime):
            return _backlog(sources)
        times, rows = zip(*self._arrived, strict=True)
        return max(0.0, float(np.interp(at, times, rows)) - (self._done if position is None else position))


def _sample(pair: Sequence[float]) -> tuple[float, float] | None:
    """When, in unix seconds, and how many rows; None: neither."""
    try:
        about = dict(zip(("at", "rows"), pair, strict=True))
        return amount(about, "at", plausible.MOST_ID) / 1000, amount(about, "rows", plausible.MOST_BYTES)
    except _ABSURD:
        return None


def _stage(event: Mapping[str, Any]) -> StageRun:
    cpu, waited = count(event, "cpu_ns", plausible.MOST_NS), count(event, "wait_ms", plausible.MOST_NS)
    return StageRun(
        tasks=count(event, "tasks", plausible.MOST_TASKS, least=1),
        cpu_seconds=cpu / 1e9 + count(event, "python_ms", plausible.MOST_NS) / 1e3,
        busy_seconds=max(0.0, count(event, "run_ms", plausible.MOST_NS) - waited) / 1e3,
        each=tuple(_task(*task) for task in event["each"]),
        parents=tuple(int(parent) for parent in event["parents"]),
    )


def _task(who: object, cpu_ns: object, rows: object) -> tuple[str, float, float]:
    about = {"cpu_ns": cpu_ns, "rows": rows}
    seconds = count(about, "cpu_ns", plausible.MOST_NS) / 1e9
    return str(who), seconds, float(count(about, "rows", plausible.MOST_ROWS))


def _overworked(batch: Batch) -> str:
    """Say which stage claims more time than its tasks had; empty: none."""
    for index, run in enumerate(batch.stages):
        used = max(run.cpu_seconds, run.busy_seconds)
        if used > MOST_WORK * run.tasks * (batch.seconds + 1.0):
            return f"stage {index + 1} worked {used:.3g} s in {run.tasks} tasks of {batch.seconds:.3g} s"
    return ""


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


def _state_bytes(operator: Mapping[str, Any]) -> int | None:
    """RocksDB's files where they are told, else what the provider says it holds in memory."""
    custom = plausible.mapping(operator, "customMetrics")
    files = plausible.counted(custom, "rocksdbSstFileSize", plausible.MOST_BYTES)
    return files or plausible.counted(operator, "memoryUsedBytes", plausible.MOST_BYTES)


def _total(values: Iterable[int | None]) -> float | None:
    """Their sum; None: there are none, or one is not known."""
    known = list(values)
    return float(sum(value or 0 for value in known)) if known and None not in known else None


def _parts(parts: Mapping[str, Any]) -> dict[str, float]:
    """The seconds of every part of a batch that has a sensible time."""
    told = {str(name): plausible.counted(parts, name, plausible.MOST_MS) for name in parts}
    return {storable(name): ms / 1000 for name, ms in told.items() if ms is not None}


def _backlog(sources: Sequence[Mapping[str, Any]]) -> float | None:
    """Rows that the sources hold beyond this batch, where their offsets count rows."""
    waiting = 0.0
    for source in sources:
        end, latest = _count(source.get("endOffset")), _count(source.get("latestOffset"))
        if end is None or latest is None:
            return None
        waiting += max(0.0, latest - end)
    return waiting if sources else None


def _position(sources: Sequence[Mapping[str, Any]]) -> float | None:
    """Where a reader of Kafka stands, counted as the ends of its topics are; None: another source."""
    ends = [_count(one.get("endOffset")) for one in sources if "Kafka" in str(one.get("description"))]
    known = [end for end in ends if end is not None]
    return sum(known) if known and len(known) == len(sources) else None


def _end(sources: Sequence[Mapping[str, Any]]) -> float | None:
    """Where the sources stand: numInputRows would count the rows of a task twice that ran again."""
    position = _position(sources)
    if position is not None or len(sources) != 1:
        return position
    return plausible.counted(sources[0], "endOffset", plausible.MOST_ID)


def _count(offset: Any) -> float | None:
    """The rows that an offset counts: a Kafka topic's per partition, or one number under a name."""
    if isinstance(offset, str):
        try:
            offset = json.loads(offset)
        except (ValueError, RecursionError):
            return None
    if not isinstance(offset, dict):
        return None  # a bare number may be anything: the rate source counts seconds
    total = 0.0
    for value in offset.values():
        if isinstance(value, bool):
            return None
        part = value if isinstance(value, int | float) else _count(value)
        if part is None or not 0 <= part <= plausible.MOST_BYTES:
            return None
        total += part
    return total


def _words(event: Mapping[str, Any]) -> str | None:
    kind = event.get("event")
    if kind == "note":
        return str(event.get("text"))
    if kind == "executor added":
        return f"executor {event.get('id')} registered with {event.get('slots')} slots"
    if kind == "executor removed":
        return f"executor {event.get('id')} is gone: {event.get('reason')}"
    if kind == "query started":
        return f"query {event.get('name') or ''} started, run {event.get('run')}".replace("  ", " ")
    if kind == "query ended":
        reason = event.get("reason")
        return "query ended" + (
            f": {' '.join(str(reason).split()).partition(' SQLSTATE')[0][:200]}" if reason else ""
        )
    return None
