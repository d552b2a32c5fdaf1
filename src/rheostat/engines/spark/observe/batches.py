"""Turns Spark's events into batches. Pure: no Spark, no clock."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from textwrap import shorten
from typing import NamedTuple

import numpy as np

from rheostat.engines.spark import events as spark
from rheostat.engines.spark.events import Progress, SourceProgress, StateProgress, moment
from rheostat.engines.spark.observe import offsets
from rheostat.engines.spark.protocol import Arrival, ServiceTime
from rheostat.model.documents import storable
from rheostat.model.observation import Event

MOST_ARRIVALS = 1000
MOST_LETTERS = 200  # of the reason why a query ended
MOST_SERVICE_TIMES = 20_000  # of tasks whose batch has not ended
MOST_WORK = 10.0  # of the time that its tasks had; a stage that claims more counted wrongly


class AbsurdError(ValueError):
    """A batch reports impossible values."""


class TaskRun(NamedTuple):
    """One task of a stage."""

    executor: str
    cpu_seconds: float  # with the Python worker that served it
    rows: float  # that it read; a streaming shuffle counts none
    held_seconds: float  # in its slot
    partition: int = 0  # of its stage: in every batch that of the same keys, and of the same state
    counted: float | None = None  # rows that left it; None: no observe() of ours counts them


@dataclass(frozen=True, slots=True)
class StageRun:
    """One stage of one batch."""

    tasks: int
    cpu_seconds: float  # of its tasks and of the Python workers that served them
    busy_seconds: float  # its tasks' time without waiting for input
    each: tuple[TaskRun, ...]
    parents: tuple[int, ...] = ()
    place: int | None = None  # in the batch's plan; None: it is of another plan, or not known
    places: int | None = None  # the stages of that plan
    times: int = 1  # how often it ran
    earlier_seconds: float = 0.0  # for which the tasks of its earlier runs held their slots
    service_seconds: float | None = None  # for which rows held its tasks in Real-Time Mode; None: unknown
    state_seconds: float | None = None  # what its state partitions took of busy_seconds; None: unknown

    @property
    def held_seconds(self) -> float:
        """For how long its tasks held their slots, from launch to end, in all its runs."""
        return self.earlier_seconds + sum(task.held_seconds for task in self.each)


NOTHING = StageRun(0, 0.0, 0.0, (), service_seconds=0.0)


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch, from its trigger to its commit."""

    number: int
    started: float  # seconds since the run began
    finished: float
    input_rows: float
    backlog: float | None  # rows that its sources hold beyond it; None: they do not say
    rows: Mapping[str, float]  # rows out of each operator, and "a to b" where b takes only some of a's
    stages: tuple[StageRun, ...]  # from the source up
    parts: Mapping[str, float]  # seconds of each phase, by Spark's names
    state_rows: float | None = None
    state_bytes: float | None = None
    state_memory_bytes: float | None = None
    idle: bool = False  # nothing had arrived, so nothing ran
    query: str = ""  # the part of the application's graph that it belongs to
    doubt: str = ""  # what was absurd about it; then all we know is that it ended
    end: float | None = None  # where its source stands after it: rows of topics, seconds of the rate source
    run: str = ""  # of its query; another one begins with every restart
    other: StageRun = NOTHING  # stages outside its plan: what foreachBatch() runs, what is broadcast
    cold: bool = False  # one of the first of its run: its JVMs load classes and compile
    update_seconds: tuple[float, ...] = ()  # of rows in each stateful operator, lowest first; empty: unknown

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
    """Puts the events of one query together into batches; keeps the stages of open batches."""

    began_at: float  # unix seconds of the run's time 0
    source: str = ""  # whose rows are the input; where it counts none, Spark's own number is
    realtime: bool = False
    query: str | None = None  # the id of the query that is measured; None: the first one with an event
    name: str = ""  # what that query is called
    _arrived: list[tuple[float, float]] = field(
        default_factory=list
    )  # (when, rows so far), if the source tells
    _done: float = 0.0
    _stages: dict[int, dict[int, StageRun]] = field(default_factory=dict)  # batch -> stage id -> run
    _served: dict[tuple[int, int], float] = field(default_factory=dict)  # stage id, partition -> seconds
    _last: Batch | None = None
    _position: float | None = None  # where a reader of Kafka stood after it
    _doubt: str = ""  # what was absurd since then

    def count_arrivals(self, samples: Sequence[Arrival]) -> None:
        """Take what the source was offered by when; only the newest samples matter for batches to come."""
        for milliseconds, rows in samples:
            at = milliseconds / 1000 - self.began_at
            if not self._arrived or self._arrived[-1][0] <= at:
                if [before for _, before in self._arrived[-2:]] == [rows, rows]:
                    self._arrived.pop()  # two samples are enough for a silence, however long
                self._arrived.append((at, rows))
        del self._arrived[:-MOST_ARRIVALS]

    def add_service_times(self, times: Sequence[ServiceTime]) -> None:
        """Take for how long rows held tasks, before the end of their batch is read."""
        self._served |= {(time.stage, time.partition): time.seconds for time in times}
        for old in list(self._served)[:-MOST_SERVICE_TIMES]:
            del self._served[old]

    def moment(self, milliseconds: float) -> float:
        """A unix time in seconds since the run began."""
        return milliseconds / 1000 - self.began_at

    @property
    def arrivals(self) -> list[tuple[float, float]]:
        """The latest of what the source was offered: when, and rows so far."""
        return list(self._arrived)

    def read(self, events: Sequence[spark.Event]) -> tuple[list[Batch], list[Event]]:
        """Return the batches that ended, and the events that a person should hear of."""
        batches: list[Batch] = []
        reported: list[Event] = []
        for event in events:
            match event:
                case spark.StageEnded():
                    self._add_stage(event)
                case spark.BatchEnded(progress):
                    batches += self._end_batch(progress)
                case spark.Idle():
                    batches += self._idle_batch(event)
                case spark.Unreadable():
                    batches += self._doubt_event(event)
                case _:
                    reported.append(Event(self._when(event.at), *_words(event)))
        reported += [
            Event(batch.finished, "absurd", f"batch {batch.number} is not judged: {batch.doubt}")
            for batch in batches
            if batch.doubt
        ]
        return batches, reported

    def _add_stage(self, event: spark.StageEnded) -> None:
        if not event.failed and self._is_ours(event.query):
            runs = self._stages.setdefault(event.batch, {})
            runs[event.id] = _plus(runs.get(event.id), _stage(event))

    def _is_ours(self, query: str) -> bool:
        if self.query is None:
            self.query = query
        return query == self.query

    def _doubt_event(self, event: spark.Unreadable) -> list[Batch]:
        """What makes no sense casts doubt on our batch, unless it belongs to another query."""
        if event.query is not None and not self._is_ours(event.query):
            return []
        self._doubt = event.why
        return [self._judged(self._doubtful(event.batch))] if event.ends_batch and event.query else []

    def _end_batch(self, progress: Progress) -> list[Batch]:
        """The batch that a progress describes or, where it makes no sense, the fact that there was one."""
        if not self._is_ours(progress.id):
            return []
        try:
            batch = self._batch(progress)
        except AbsurdError as error:
            self._doubt = str(error)
            batch = self._doubtful(progress.batch_id)
        return [self._judged(batch)]

    def _doubtful(self, number: int | None) -> Batch:
        if number is None:
            number = self._last.number + 1 if self._last else 0
        return Batch(number, self._latest, self._latest, 0.0, None, {}, (), {}, query=self.name)

    def _judged(self, batch: Batch) -> Batch:
        """The batch, with whatever casts doubt on it."""
        batch, self._doubt = replace(batch, doubt=self._doubt or _overworked(batch)), ""
        self._last = batch
        return batch

    def _idle_batch(self, event: spark.Idle) -> list[Batch]:
        """A trigger at which the source held nothing beyond the last batch, so Spark ran none.

        Spark also runs none where a user lets rows wait until there are enough of them; that is no silence.
        """
        if not self._is_ours(event.query):
            return []
        at = moment(event.timestamp) - self.began_at
        last = self._last or Batch(-1, at, at, 0.0, 0.0, {}, (), {}, query=self.name)
        offered = next((rows for when, rows in reversed(self._arrived) if when <= at), 0.0)
        if self._position is not None and offered > self._position:
            return []
        nothing = replace(last, input_rows=0.0, backlog=0.0, rows={}, stages=(), parts={}, doubt="")
        return [replace(nothing, started=at, finished=at, idle=True)]

    def _batch(self, progress: Progress) -> Batch:
        number, parts = progress.batch_id, progress.duration_ms
        idle = "addBatch" not in parts
        runs = {} if idle else self._stages.pop(number, {})
        runs = {id: replace(run, service_seconds=self._service(id, run)) for id, run in runs.items()}
        for old in [batch for batch in self._stages if batch < number]:
            del self._stages[old]
        started = moment(progress.timestamp) - self.began_at
        seconds = _milliseconds(progress) / 1000
        rows = _rows(progress)
        stages, other = _in_order(runs)
        input_rows = rows.get(self.source, _read_once(progress.num_input_rows, stages))
        if input_rows is None:
            raise AbsurdError("numInputRows makes no sense")
        if idle and input_rows:
            raise AbsurdError(f"{input_rows:g} rows in a batch that took no time")
        self._done += input_rows
        return Batch(
            number=number,
            started=started,
            finished=started + seconds,
            input_rows=float(input_rows),
            backlog=self._waiting(started + seconds if self.realtime else started, progress.sources),
            rows=rows,
            stages=stages,
            other=other,
            parts={storable(name): ms / 1000 for name, ms in parts.items() if ms is not None},
            state_rows=_total(state.num_rows_total for state in progress.state_operators),
            state_bytes=_total(_state_bytes(state) for state in progress.state_operators),
            state_memory_bytes=_total(state.memory_used_bytes for state in progress.state_operators),
            idle=idle,
            query=self.name,
            end=offsets.end(progress.sources),
            run=progress.run_id,
            update_seconds=_updates(progress.state_operators),
        )

    def _service(self, stage: int, run: StageRun) -> float | None:
        """For how long rows held a stage's tasks; None: that of a task is not known."""
        known = [self._served.pop((stage, task.partition), None) for task in run.each]
        if len(known) != run.tasks or None in known:
            return None
        return sum(seconds or 0.0 for seconds in known)

    @property
    def _latest(self) -> float:
        """When the last batch ended."""
        return self._last.finished if self._last else 0.0

    def _when(self, at: float | None) -> float:
        return self._latest if at is None else at / 1000 - self.began_at

    def _waiting(self, at: float, sources: Sequence[SourceProgress]) -> float | None:
        """Rows that the source holds beyond this batch: by what it was offered, or by its offsets.

        Micro-batches of a source other than Kafka take all that it has, and may count it differently.
        """
        position = self._position = offsets.position(sources)
        if not self._arrived or (position is None and not self.realtime):
            return offsets.backlog(sources)
        times, rows = zip(*self._arrived, strict=True)
        return max(0.0, float(np.interp(at, times, rows)) - (self._done if position is None else position))


def _stage(event: spark.StageEnded) -> StageRun:
    return StageRun(
        tasks=event.tasks,
        cpu_seconds=event.cpu_ns / 1e9 + event.python_ms / 1e3,
        busy_seconds=max(0.0, event.run_ms - event.wait_ms) / 1e3,
        each=tuple(
            TaskRun(executor, cpu_ns / 1e9, float(rows), held_ms / 1e3, index, counted)
            for executor, cpu_ns, rows, held_ms, index, counted in event.each
        ),
        parents=event.parents,
        place=event.place,
        places=event.places,
    )


def _milliseconds(progress: Progress) -> float:
    """How long the batch took."""
    parts = progress.duration_ms
    took = parts.get("triggerExecution", progress.batch_duration)
    if took is None:
        raise AbsurdError("its duration makes no sense")
    return took


def _rows(progress: Progress) -> dict[str, float]:
    """What the operators counted; a count that makes no sense is missing."""
    return {
        name if metric == "rows" else f"{name} {metric}": float(count)
        for name, counts in progress.observed_metrics.items()
        for metric, count in counts.items()
        if count is not None
    }


def _overworked(batch: Batch) -> str:
    """Which stage claims more time than its tasks had; empty: none."""
    for index, run in enumerate(batch.stages):
        used = max(run.cpu_seconds, run.busy_seconds)
        if used > MOST_WORK * run.tasks * (batch.seconds + 1.0):
            return f"stage {index + 1} worked {used:.3g} s in {run.tasks} tasks of {batch.seconds:.3g} s"
    return ""


def _in_order(runs: Mapping[int, StageRun]) -> tuple[tuple[StageRun, ...], StageRun]:
    """The stages of the batch's plan, from the source up, and all others together.

    A side of a join without rows runs no task. Where no place is known, they are those of the last job.
    """
    places = max((run.places or 0 for run in runs.values()), default=0)
    if not places:
        return tuple(runs[key] for key in _chain(runs)), NOTHING
    ordered, other = [NOTHING] * places, NOTHING
    for run in runs.values():
        if run.place is None or run.place >= places:
            other = _plus(other, run)
        else:
            before = ordered[run.place]
            twice = replace(_plus(before, run), times=before.times + 1)
            ordered[run.place] = run if before is NOTHING else twice
    return tuple(ordered), other


def _read_once(rows: int | None, stages: Sequence[StageRun]) -> int | None:
    """Spark counts rows as often as they are read, which foreachBatch() may do several times."""
    times = {run.times for run in stages if run is not NOTHING and not run.parents}
    return round(rows / times.pop()) if rows and len(times) == 1 else rows


def _chain(runs: Mapping[int, StageRun]) -> list[int]:
    """The stages of the batch's last job, lowest first; what was broadcast beforehand is no operator."""
    chain: set[int] = set()
    todo = [max(runs)] if runs else []
    while todo:
        stage = todo.pop()
        if stage in runs and stage not in chain:
            chain.add(stage)
            todo += runs[stage].parents
    return sorted(chain)


def _plus(first: StageRun | None, second: StageRun) -> StageRun:
    """A stage that ran again cost both runs; its instances are the last run's.

    An executor was lost, or foreachBatch() uses the batch twice.
    """
    if first is None:
        return second
    return StageRun(
        second.tasks,
        first.cpu_seconds + second.cpu_seconds,
        first.busy_seconds + second.busy_seconds,
        second.each,
        second.parents,
        second.place,
        second.places,
        earlier_seconds=first.held_seconds + second.earlier_seconds,
        service_seconds=_sum(first.service_seconds, second.service_seconds),
    )


def _sum(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else first + second


def _state_bytes(state: StateProgress) -> int | None:
    """The size of RocksDB's files where it is given, else what the provider says it holds in memory."""
    return state.custom_metrics.get("rocksdbSstFileSize") or state.memory_used_bytes


def _updates(states: Sequence[StateProgress]) -> tuple[float, ...]:
    """What rows took in each stateful operator; Spark lists the last of them first."""
    known = [state.all_updates_time_ms for state in reversed(states)]
    return () if None in known else tuple((ms or 0.0) / 1000 for ms in known)


def _total(values: Iterable[int | None]) -> float | None:
    """Their sum; None: there are none, or one is not known."""
    known = list(values)
    return float(sum(value or 0 for value in known)) if known and None not in known else None


def _words(event: spark.Reported) -> tuple[str, str]:
    """An event's kind, and what happened."""
    match event:
        case spark.Note():
            return event.kind or event.event, event.text
        case spark.ExecutorAdded():
            return event.event, f"executor {event.id} registered with {event.slots} slots"
        case spark.ExecutorRemoved():
            return event.event, f"executor {event.id} is gone: {event.reason}"
        case spark.QueryStarted():
            return event.event, f"query {event.name} started, run {event.run}".replace("  ", " ")
        case spark.QueryEnded():
            reason = shorten(event.reason.partition(" SQLSTATE")[0], MOST_LETTERS, placeholder=" ...")
            return event.event, f"query ended: {reason}" if reason else "query ended"
