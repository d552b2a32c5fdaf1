"""Turns batches into an observation: what a policy may know about a window. Pure: no Spark, no clock."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from rheostat.engines.spark.observe.batches import Batch, StageRun
from rheostat.engines.spark.query_graph import received
from rheostat.model.configuration import NodeKind
from rheostat.model.observation import (
    ApplicationMeasures,
    InstanceMeasures,
    OperatorMeasures,
)
from rheostat.model.topology import Stream, Topology

CLOCK_SECONDS = 60.0  # by which the driver's clock may differ from the controller's
Shares = Mapping[str, tuple[int, ...]]  # operator -> the indices of its stages


@dataclass(frozen=True, slots=True)
class Window:
    """The batches that ended in a window, and the last one before it."""

    before: Batch | None
    batches: tuple[Batch, ...]
    realtime: bool
    now: float
    start: float = 0.0
    offered: tuple[tuple[float, float], ...] = ()  # when, and rows so far, if the source tells
    latest: tuple[Batch, ...] = ()  # batches before it, too, by which rows are compared with that
    stale: bool = False  # no batch ended in it: these are the last that did
    busy: bool = False  # a batch runs

    @property
    def doubtful(self) -> bool:
        """Whether a batch is missing or makes no sense: then nothing can be said about the window."""
        all_batches = (*filter(None, [self.before]), *self.batches)
        times = [-CLOCK_SECONDS, *(batch.started for batch in all_batches)]
        late = max((batch.finished for batch in all_batches), default=self.now) > self.now + CLOCK_SECONDS
        skipped = any(
            after.number > batch.number + 1 and not after.idle for batch, after in pairwise(all_batches)
        )
        return late or skipped or times != sorted(times) or any(batch.doubt for batch in all_batches)

    @property
    def trusted(self) -> "Window":
        """The same window, or an empty one if it is doubtful."""
        return replace(self, before=None, batches=(), latest=()) if self.doubtful else self

    @property
    def ran(self) -> tuple[Batch, ...]:
        """Those in which something was done."""
        return tuple(batch for batch in self.batches if not batch.idle)

    def offered_since(self, at: float) -> float | None:
        """What the source was offered after this moment, by its own count; None: no report since then."""
        return _counted(self.offered, at, self.now) if _at(self.offered, -1) >= at else None

    @property
    def quiet(self) -> bool:
        """Whether there was nothing to do, and still is not as far as we know."""
        if not self.batches or self.ran or self.busy:
            return False
        return not self.offered_since(self.batches[-1].started)

    @property
    def input_rows(self) -> float:
        """Source rows that were processed."""
        return sum(batch.input_rows for batch in self.batches)


def operators(
    topology: Topology,
    names: Sequence[str],
    window: Window,
    stages: Shares,
    parallelism: Mapping[str, int],
    nodes: Mapping[str, str],
    kind: NodeKind,
) -> dict[str, OperatorMeasures]:
    """Rows, CPU and skew of one query's operators; `nodes` maps each executor to its node."""
    measured, window = {}, window.trusted
    rows = {name: _rows_in(topology, window, stages, name) for name in names}
    for name in names:
        rows_in = rows[name]
        linked = any(received(name) in batch.rows for batch in window.ran)
        first = linked or not topology.inputs[name]
        runs = _runs(window, stages, name)
        rows_measured = _rows_in(topology, _complete(window, stages), stages, name)
        measured[name] = OperatorMeasures(
            # A batch that stands in may have run with another size.
            parallelism=runs[-1][0].tasks
            if runs and runs[-1] and not window.stale
            else parallelism.get(name, 1),
            received=_arrived(window) if first else rows_in,
            processed=rows_in,
            emitted=_known(
                {s.downstream: rows.get(s.downstream, _sent(window, s)) for s in topology.outputs[name]}
            ),
            cpu_seconds=0.0
            if window.quiet
            else _work(runs, rows_in, rows_measured, lambda run: run.cpu_seconds),
            # In Real-Time Mode a task runs as long as its batch: waiting and working look the same.
            busy_seconds=None
            if window.realtime
            else _work(runs, rows_in, rows_measured, lambda run: run.busy_seconds),
            waiting=_waiting(window) if linked else None,
            arrivals=tuple(batch.input_rows for batch in (window.ran if window.stale else window.batches))
            if first
            else (),
            skew=_skew(runs, window.realtime),
            instances=_instances(window, runs, nodes, kind) if window.realtime else (),
        )
    return measured


def application(source: str, window: Window, trigger_seconds: float | None) -> ApplicationMeasures:
    """Load, throughput, backlog, lag and the batches' durations of one query, which begins with `source`."""
    window = window.trusted
    ran, last = window.ran, window.batches[-1] if window.batches else None
    load = _load(window)
    return ApplicationMeasures(
        load={source: load},
        throughput=None if window.stale else _throughput(window),
        backlog=_backlog(window, load),
        lag_seconds=lag(window, load),
        batch_seconds=_batch_seconds(window),
        trigger_seconds=trigger_seconds,
        state_bytes=last.state_bytes if last else None,
        state_rows=last.state_rows if last else None,
        batch_parts=_parts(ran),
        batches=0 if window.stale else len(ran),
        stale=window.stale,
    )


def together(
    topology: Topology, query_of: Mapping[str, str], measured: Mapping[str, ApplicationMeasures]
) -> ApplicationMeasures:
    """A graph of queries as one application: backlogs add up over all queries, lags along a path."""
    if len(measured) == 1:
        return next(iter(measured.values()))
    all_measured = list(measured.values())
    sources = [measured[query_of[name]] for name in topology.sources if query_of[name] in measured]
    slowest = max(all_measured, key=lambda query: query.batch_seconds or 0.0)
    unknown = not slowest.batch_seconds and any(query.batch_seconds is None for query in all_measured)
    return ApplicationMeasures(
        load={n: load for query in sources for n, load in query.load.items() if n in topology.sources},
        throughput=_total([query.throughput for query in sources]),
        backlog=_total([query.backlog for query in all_measured]),
        lag_seconds=_longest(topology, query_of, {n: query.lag_seconds for n, query in measured.items()}),
        batch_seconds=None if unknown else slowest.batch_seconds,
        trigger_seconds=slowest.trigger_seconds,
        state_bytes=_total([query.state_bytes for query in all_measured]),
        state_rows=_total([query.state_rows for query in all_measured]),
        batch_parts=slowest.batch_parts,
        batches=sum(query.batches or 0 for query in all_measured),
        stale=any(query.stale for query in all_measured),
    )


def _total(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _longest(
    topology: Topology, query_of: Mapping[str, str], lags: Mapping[str, float | None]
) -> float | None:
    """The lags of the queries on the worst path, added up; an operator pays for its query once.

    A query of which nothing is known adds nothing, unless rows come in there.
    """
    if any(lags.get(query_of[name]) is None for name in topology.sources):
        return None
    until: dict[str, float] = {}
    for name in topology.order:
        query = query_of[name]
        before = [(query_of[stream.upstream], until[stream.upstream]) for stream in topology.inputs[name]]
        paid = [seconds for other, seconds in before if other == query]
        until[name] = (
            max(paid) if paid else max([s for _, s in before], default=0.0) + (lags.get(query) or 0.0)
        )
    return max(until.values())


def stage_overhead(batch: Batch, stages: int, slots: int) -> float | None:
    """What a stage costs regardless of its rows: a batch's time in which no task ran, shared by its stages.

    `slots` are those that it ran on. A batch with other stages than the query's tells nothing.
    """
    if batch.idle or batch.doubt or not stages or len(batch.stages) != stages:
        return None
    work = sum(run.busy_seconds / max(1, min(run.tasks, slots)) for run in batch.stages)
    return max(0.0, batch.seconds - work) / stages


def _batch_seconds(window: Window) -> float | None:
    """How long a batch took; 0 if no rows came, so none was needed."""
    if window.quiet:
        return 0.0
    ran = window.ran
    return sum(batch.seconds for batch in ran) / len(ran) if ran and not window.stale else None


def lag(window: Window, load: float | None) -> float | None:
    """How old the oldest row was when its batch was done, or is by now if no batch ends."""
    batches = (*filter(None, [window.before]), *window.batches)
    if not batches:
        return None
    last, ran = batches[-1], () if window.stale else window.ran
    behind = last.backlog / load if last.backlog and load else 0.0
    if window.realtime:  # rows are done as they come, except those that wait at the source
        return behind if last.backlog is not None else None
    if not last.idle:
        return _waited(batches, last) + max(0.0, window.now - last.finished - last.seconds) + behind
    waits = window.busy and window.offered_since(last.started) != 0
    since = window.now - last.started if waits else 0.0
    return max(since, *(_waited(batches, batch) for batch in ran[-1:]), 0.0) + behind


def _waited(batches: Sequence[Batch], batch: Batch) -> float:
    """How old a batch's oldest row was when it was done: it came after the trigger before."""
    index = batches.index(batch)
    return batch.finished - batches[max(0, index - 1)].started


def _backlog(window: Window, load: float | None) -> float | None:
    """Rows that arrived and are not done: in the running batch, and at the sources beyond it."""
    if not window.batches:
        return None
    last = window.batches[-1]
    if window.realtime:
        return last.backlog
    return None if load is None else load * max(0.0, window.now - last.started) + (last.backlog or 0.0)


def _load(window: Window) -> float | None:
    """Rows/s that arrived, processed yet or not: by the source's own count, else from trigger to trigger.

    A source may count other things than rows; what it counts between two batches shows how many rows each is.
    """
    since, until = max(window.start, _at(window.offered, 0)), min(window.now, _at(window.offered, -1))
    latest = [batch for batch in window.latest if batch.started >= _at(window.offered, 0)]
    if until > since and len(latest) > 1:
        compared = replace(window, before=latest[0], batches=tuple(latest[1:]))
        rows, counted = _arrived(compared), _counted(window.offered, *_span(compared))
        if rows and counted:
            return rows / counted * _counted(window.offered, since, until) / (until - since)
    arrived = _arrived(window)
    if not arrived and until > since and _counted(window.offered, since, until):
        return None  # the first rows of all: the source may count anything
    since, until = _span(window)
    return arrived / (until - since) if arrived is not None and until > since else None


def _at(offered: Sequence[tuple[float, float]], index: int) -> float:
    return offered[index][0] if offered else -math.inf


def _span(window: Window) -> tuple[float, float]:
    """The moments between which the rows of its batches arrived; 0 and 0 if there are too few batches."""
    first = window.before or (window.batches[0] if len(window.batches) > 1 else None)
    if first is None or not window.batches:
        return 0.0, 0.0
    last = window.batches[-1]
    return (first.finished, last.finished) if window.realtime else (first.started, last.started)


def _counted(offered: Sequence[tuple[float, float]], since: float, until: float) -> float:
    """What a source was offered between two moments by its own count."""
    at, counts = zip(*offered, strict=True)
    before, after = np.interp((since, until), at, counts)
    return float(after - before)


def _arrived(window: Window) -> float | None:
    if not window.batches:
        return None
    first, last = window.before, window.batches[-1]
    rows = window.input_rows
    if first is None:  # the very first batch holds what came before anything was counted
        first = window.batches[0]
        rows -= first.input_rows
    if first.backlog is not None and last.backlog is not None:
        rows += last.backlog - first.backlog
    return max(0.0, rows)


def _throughput(window: Window) -> float | None:
    if not window.batches:
        return None
    first = window.before
    rows, begin = window.input_rows, first.finished if first else window.batches[0].started
    seconds = window.batches[-1].finished - begin
    return rows / seconds if seconds > 0 else None


def _rows_in(topology: Topology, window: Window, stages: Shares, name: str) -> float | None:
    """Rows into an operator: out of the operator before it, or, in a plain script, what its stage read."""
    if not window.batches:
        return None
    if not window.ran:
        return 0.0
    inputs = topology.inputs[name]
    counted = inputs[0].upstream if inputs else name
    if any(received(name) in batch.rows for batch in window.ran):
        counted = received(name)  # it reads a topic
    if any(counted in batch.rows for batch in window.ran):
        return _rows_out(window, counted)
    runs = _runs(window, stages, name)
    if window.realtime or not runs:
        return None if inputs else window.input_rows
    return sum(rows for batch in runs for run in batch[:1] for _, _, rows in run.each)


def _rows_out(window: Window, name: str) -> float | None:
    """Rows that were counted under a name; None if a batch with rows has no such count."""
    counts = [batch.rows.get(name) for batch in window.ran if batch.input_rows or name in batch.rows]
    known = [rows for rows in counts if rows is not None]
    return sum(known) if known and len(known) == len(counts) else None


def _sent(window: Window, stream: Stream) -> float | None:
    """Rows that a query sent to another: all of its last operator, or those that the other takes."""
    some = _rows_out(window, f"{stream.upstream} to {stream.downstream}")
    return _rows_out(window, stream.upstream) if some is None else some


def _waiting(window: Window) -> float | None:
    return window.batches[-1].backlog if window.batches else None


def _known(rows: Mapping[str, float | None]) -> dict[str, float]:
    return {name: count for name, count in rows.items() if count is not None}


def _complete(window: Window, stages: Shares) -> Window:
    """Without the batches that lack stages: of the others we cannot say to which operator they belong."""
    planned = max((index + 1 for indices in stages.values() for index in indices), default=0)
    complete = (batch for batch in window.batches if batch.idle or len(batch.stages) >= planned)
    return replace(window, batches=tuple(complete))


def _runs(window: Window, stages: Shares, name: str) -> list[list[StageRun]]:
    """The runs of an operator's stages, per batch."""
    if name not in stages:
        return []
    return [[batch.stages[index] for index in stages[name]] for batch in _complete(window, stages).ran]


def _work(
    runs: list[list[StageRun]], rows: float | None, measured: float | None, what: Callable[[StageRun], float]
) -> float | None:
    """What all rows took, by the rows of complete batches: the others took as much each."""
    if not runs or (rows and not measured):
        return None
    work = sum(what(run) for batch in runs for run in batch)
    return work * (rows / measured) if rows and measured else work


def _skew(runs: list[list[StageRun]], realtime: bool) -> float | None:
    """The largest instance over the mean, by rows, or by CPU where Spark counts no rows."""
    ratios = []
    for batch in runs:
        for run in batch[:1]:
            shares = [cpu if realtime else rows for _, cpu, rows in run.each]
            if shares and sum(shares) > 0:
                ratios.append(max(shares) * len(shares) / sum(shares))
    return sum(ratios) / len(ratios) if ratios else None


def _instances(
    window: Window, runs: list[list[StageRun]], nodes: Mapping[str, str], kind: NodeKind
) -> tuple[InstanceMeasures, ...]:
    """Where the instances of the last batch ran; they hold their slots for the whole batch."""
    if not runs or not runs[-1]:
        return ()
    seconds = max(window.ran[-1].seconds, 1e-9)
    return tuple(
        InstanceMeasures(nodes.get(executor, "?"), utilisation=cpu / (seconds * kind.slot_cores))
        for executor, cpu, _ in runs[-1][0].each
    )


def hosted(
    names: Sequence[str], window: Window, stages: Shares, nodes: Mapping[str, str], slots: int
) -> Counter[tuple[str, str]] | None:
    """How many instances of each operator each node ran at once in the last batch: (node, operator).

    None: no batch shows it.
    """
    window = window.trusted
    if window.quiet:
        return Counter()
    if window.before is not None:
        window = replace(window, batches=(window.before, *window.batches))
    placed: Counter[tuple[str, str]] = Counter()
    for name in names:
        runs = _runs(window, stages, name)
        if name not in stages or not runs:
            return None
        placed.update((nodes.get(executor, "?"), name) for run in runs[-1][:1] for executor, _, _ in run.each)
    if not window.realtime:  # tasks beyond the slots run one after the other
        placed = Counter({place: min(tasks, slots) for place, tasks in placed.items()})
    return placed


def _parts(ran: tuple[Batch, ...]) -> dict[str, float]:
    names = sorted({name for batch in ran for name in batch.parts})
    return {name: sum(batch.parts.get(name, 0.0) for batch in ran) / len(ran) for name in names}
