"""Measures an application by the windows of its queries: load, throughput, backlog, lag. Pure: no clock."""

from collections.abc import Mapping, Sequence

from rheostat.engines.spark.observe import arrivals
from rheostat.engines.spark.observe.batch_window import BatchWindow
from rheostat.engines.spark.observe.batches import Batch
from rheostat.model.observation import ApplicationMeasures
from rheostat.model.topology import Topology


def application(
    shares: Mapping[str, float], window: BatchWindow, trigger_seconds: float | None
) -> ApplicationMeasures:
    """Load, throughput, backlog, lag and the batches' durations of one query; `shares` has its sources."""
    window = window.trusted
    ran, last = window.ran, window.batches[-1] if window.batches else None
    load = arrivals.load(window)
    return ApplicationMeasures(
        load={source: None if load is None else load * share for source, share in shares.items()},
        throughput=None if window.stale else _throughput(window),
        backlog=_backlog(window, load),
        lag_seconds=lag(window, load),
        batch_seconds=_batch_seconds(window),
        trigger_seconds=trigger_seconds,
        state_bytes=last.state_bytes if last else None,
        state_memory_bytes=last.state_memory_bytes if last else None,
        state_rows=last.state_rows if last else None,
        batch_parts=_parts(ran),
        batches=0 if window.stale else len(ran),
        stale=window.stale and not window.resting,
    )


def together(
    topology: Topology, query_of: Mapping[str, str], measured: Mapping[str, ApplicationMeasures]
) -> ApplicationMeasures:
    """A graph of queries as one application: backlogs add up over all queries, lags along a path.

    All that is said of batches is said of one query, which takes the largest part of its trigger: one query's
    seconds mean nothing beside another's trigger. Overload is judged by each query for itself.
    """
    if len(measured) == 1:
        return next(iter(measured.values()))
    all_measured = list(measured.values())
    names = dict.fromkeys(query_of[name] for name in topology.sources)
    sources = [measured[name] for name in names if name in measured]
    slowest = max(all_measured, key=_shares_of_trigger)
    unknown = not slowest.batch_seconds and any(query.batch_seconds is None for query in all_measured)
    return ApplicationMeasures(
        load={n: load for query in sources for n, load in query.load.items() if n in topology.sources},
        throughput=_total([query.throughput for query in sources]),
        backlog=_total([query.backlog for query in all_measured]),
        lag_seconds=_longest(topology, query_of, {n: query.lag_seconds for n, query in measured.items()}),
        batch_seconds=None if unknown else slowest.batch_seconds,
        trigger_seconds=slowest.trigger_seconds,
        state_bytes=_total([query.state_bytes for query in all_measured]),
        state_memory_bytes=_total([query.state_memory_bytes for query in all_measured]),
        state_rows=_total([query.state_rows for query in all_measured]),
        batch_parts=slowest.batch_parts,
        batches=sum(query.batches or 0 for query in all_measured),
        stale=any(query.stale for query in all_measured),
        running_seconds=slowest.running_seconds,
        tasks_done=slowest.tasks_done,
        tasks_left=slowest.tasks_left,
        late_batches=slowest.late_batches,
    )


def _shares_of_trigger(query: ApplicationMeasures) -> tuple[float, float]:
    """What its finished batches take of the trigger, and the running one so far, where none has finished."""
    trigger = query.trigger_seconds or 1.0
    return (query.batch_seconds or 0.0) / trigger, (query.running_seconds or 0.0) / trigger


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
    work = sum(run.busy_seconds / max(1, min(run.tasks, slots)) for run in (*batch.stages, batch.other))
    return max(0.0, batch.seconds - work) / stages


def _batch_seconds(window: BatchWindow) -> float | None:
    """How long a batch took; 0 if no rows came, so none was needed."""
    if window.quiet:
        return 0.0
    ran = window.ran
    return sum(batch.seconds for batch in ran) / len(ran) if ran and not window.stale else None


def lag(window: BatchWindow, load: float | None) -> float | None:
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


def _backlog(window: BatchWindow, load: float | None) -> float | None:
    """Rows that arrived and are not done: in the running batch, and at the sources beyond it."""
    if not window.batches:
        return None
    last = window.batches[-1]
    if window.realtime:
        return last.backlog
    return None if load is None else load * max(0.0, window.now - last.started) + (last.backlog or 0.0)


def _throughput(window: BatchWindow) -> float | None:
    if not window.batches:
        return None
    first = window.before
    rows, begin = window.input_rows, first.finished if first else window.batches[0].started
    seconds = window.batches[-1].finished - begin
    return rows / seconds if seconds > 0 else None


def _parts(ran: tuple[Batch, ...]) -> dict[str, float]:
    names = sorted({name for batch in ran for name in batch.parts})
    return {name: sum(batch.parts.get(name, 0.0) for batch in ran) / len(ran) for name in names}
