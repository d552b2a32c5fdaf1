"""Measures the operators of a query by the stages of its batches: rows, CPU, skew, places. Pure: no clock."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import median

from rheostat.engines.spark.observe import queues
from rheostat.engines.spark.observe.arrivals import arrivals
from rheostat.engines.spark.observe.batch_window import BatchWindow
from rheostat.engines.spark.observe.batches import StageRun
from rheostat.engines.spark.observe.instances import instances
from rheostat.engines.spark.observe.partition_costs import partition_seconds, partitions
from rheostat.engines.spark.query_graph import received
from rheostat.model.configuration import NodeKind
from rheostat.model.observation import OperatorMeasures
from rheostat.model.topology import Stream, Topology

Shares = Mapping[str, tuple[int, ...]]  # operator -> the indices of its stages


def operators(
    topology: Topology,
    names: Sequence[str],
    window: BatchWindow,
    stages: Shares,
    parallelism: Mapping[str, int],
    nodes: Mapping[str, str],
    kinds: Mapping[str, NodeKind],
) -> dict[str, OperatorMeasures]:
    """Rows, CPU and skew of one query's operators; `nodes` has each executor's node, `kinds` each node's."""
    measured, window = {}, window.trusted
    rows = {name: _rows_in(topology, window, stages, name) for name in names}
    shares, came = source_shares(topology, names, window, stages), queues.received(window)
    sink = names[-1]
    for name in names:
        rows_in = rows[name]
        # The others take their rows from the operator before them, in the same query.
        first = not any(stream.upstream in names for stream in topology.inputs[name])
        share = shares.get(name, 1.0)
        came_in = (None if came is None else came * share) if first else rows_in
        waiting = queues.waiting(window) if first else None
        runs = _runs(window, stages, name)
        warm = _warm(window)
        warm_runs = _runs(warm, stages, name, with_other=name == sink)
        rows_measured = _rows_in(topology, _complete(warm, stages), stages, name)
        tasks = runs[-1][0].tasks if runs and runs[-1] else 0
        # A batch that stands in may have run with another size.
        count = (0 if window.stale else tasks) or parallelism.get(name, 1)
        measured[name] = OperatorMeasures(
            parallelism=count,
            received=came_in,
            processed=rows_in,
            emitted=_known(
                {s.downstream: _passed_on(topology, rows, window, s) for s in topology.outputs[name]}
            ),
            cpu_seconds=0.0
            if window.quiet
            else _work(warm_runs, rows_in, rows_measured, lambda run: run.cpu_seconds),
            busy_seconds=_served(warm_runs, rows_in, rows_measured)
            if window.realtime
            else _work(warm_runs, rows_in, rows_measured, lambda run: run.busy_seconds),
            partitions=partitions(runs[-1]) if runs else None,
            partition_seconds=_median(list(map(partition_seconds, warm_runs))),
            state_seconds=_state_seconds(warm_runs, rows_in, rows_measured),
            waiting=None if waiting is None else waiting * share,
            arrivals=tuple(rows * share for rows in arrivals(window)) if first else (),
            skew=_skew(runs, window.realtime),
            instances=instances(window, runs, came_in, rows_in, nodes, kinds) if tasks == count else (),
        )
    return measured


def source_shares(
    topology: Topology, names: Sequence[str], window: BatchWindow, stages: Shares
) -> dict[str, float]:
    """How the rows of a query divide among its sources: by what their stages read."""
    sources = [name for name in names if not topology.inputs[name]]
    if len(sources) < 2:
        return dict.fromkeys(sources, 1.0)
    rows = [_rows_read(_runs(window.trusted, stages, name)) for name in sources]
    total = sum(rows)
    return {
        name: read / total if total else 1 / len(sources) for name, read in zip(sources, rows, strict=True)
    }


def _rows_read(runs: list[list[StageRun]]) -> float:
    return sum(task.rows for batch in runs for run in batch[:1] for task in run.each)


def _warm(window: BatchWindow) -> BatchWindow:
    """Without the batches in which JVMs were cold: they do not show what a row costs."""
    return replace(window, batches=tuple(batch for batch in window.batches if not batch.cold))


def _rows_in(topology: Topology, window: BatchWindow, stages: Shares, name: str) -> float | None:
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
    if inputs:
        return _rows_read(runs)
    sources = [other for other in topology.sources if other in stages]
    return window.input_rows * source_shares(topology, sources, window, stages)[name]


def _rows_out(window: BatchWindow, name: str) -> float | None:
    """Rows that were counted under a name; None if a batch with rows has no such count."""
    counts = [batch.rows.get(name) for batch in window.ran if batch.input_rows or name in batch.rows]
    known = [rows for rows in counts if rows is not None]
    return sum(known) if known and len(known) == len(counts) else None


def _passed_on(
    topology: Topology, rows: Mapping[str, float | None], window: BatchWindow, stream: Stream
) -> float | None:
    """Rows on a stream; what a join takes is shared among its inputs by the rows of these."""
    if stream.downstream not in rows:
        return _sent(window, stream)
    taken = rows[stream.downstream]
    before = [rows.get(other.upstream) or 0.0 for other in topology.inputs[stream.downstream]]
    if taken is None or len(before) < 2 or not sum(before):
        return taken
    return taken * (rows.get(stream.upstream) or 0.0) / sum(before)


def _sent(window: BatchWindow, stream: Stream) -> float | None:
    """Rows that a query sent to another: all of its last operator, or those that the other takes."""
    some = _rows_out(window, f"{stream.upstream} to {stream.downstream}")
    return _rows_out(window, stream.upstream) if some is None else some


def _known(rows: Mapping[str, float | None]) -> dict[str, float]:
    return {name: count for name, count in rows.items() if count is not None}


def _complete(window: BatchWindow, stages: Shares) -> BatchWindow:
    """Without the batches that lack stages: of the others we cannot say to which operator they belong."""
    planned = max((index + 1 for indices in stages.values() for index in indices), default=0)
    complete = (batch for batch in window.batches if batch.idle or len(batch.stages) >= planned)
    return replace(window, batches=tuple(complete))


def _runs(
    window: BatchWindow, stages: Shares, name: str, *, with_other: bool = False
) -> list[list[StageRun]]:
    """The runs of an operator's stages, per batch; with stages outside the plan, which the sink caused."""
    if name not in stages:
        return []
    return [
        [*(batch.stages[index] for index in stages[name]), *([batch.other] if with_other else [])]
        for batch in _complete(window, stages).ran
    ]


def _work(
    runs: list[list[StageRun]], rows: float | None, measured: float | None, what: Callable[[StageRun], float]
) -> float | None:
    """What all rows took, by the rows of complete batches: the others took as much each."""
    if not runs or (rows and not measured):
        return None
    work = sum(what(run) for batch in runs for run in batch)
    return work * (rows / measured) if rows and measured else work


def _served(runs: list[list[StageRun]], rows: float | None, measured: float | None) -> float | None:
    """For how long rows held the instances; a task's own CPU is exact, and at least that."""
    if any(run.service_seconds is None for batch in runs for run in batch):
        return None
    used = _work(runs, rows, measured, lambda run: run.cpu_seconds)
    served = _work(runs, rows, measured, lambda run: run.service_seconds or 0.0)
    return None if used is None or served is None else max(used, served)


def _state_seconds(runs: list[list[StageRun]], rows: float | None, measured: float | None) -> float | None:
    """What the state partitions took in all batches, as busy_seconds counts it; None if any does not say."""
    if not runs or any(partitions(batch) is None for batch in runs):
        return None
    return _work(runs, rows, measured, lambda run: run.state_seconds or 0.0)


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _skew(runs: list[list[StageRun]], realtime: bool) -> float | None:
    """The largest instance over the mean, by rows, or by CPU where Spark counts no rows."""
    ratios = []
    for batch in runs:
        for run in batch[:1]:
            shares = [task.cpu_seconds if realtime else task.rows for task in run.each]
            if shares and sum(shares) > 0:
                ratios.append(max(shares) * len(shares) / sum(shares))
    return sum(ratios) / len(ratios) if ratios else None


def hosted(
    names: Sequence[str],
    window: BatchWindow,
    stages: Shares,
    nodes: Mapping[str, str],
    kinds: Mapping[str, NodeKind],
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
        placed.update((nodes.get(task.executor, "?"), name) for run in runs[-1][:1] for task in run.each)
    if not window.realtime:  # tasks beyond the slots run one after the other
        placed = Counter(
            {
                (node, name): min(tasks, kinds[node].slots) if node in kinds else tasks
                for (node, name), tasks in placed.items()
            }
        )
    return placed
