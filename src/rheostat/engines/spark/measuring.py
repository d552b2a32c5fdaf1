"""From batches to an observation: what a policy may know about a window. Pure: no Spark, no clock."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from rheostat.engines.spark.batches import Batch, StageRun
from rheostat.model.configuration import NodeKind
from rheostat.model.observation import (
    ApplicationMeasures,
    InstanceMeasures,
    OperatorMeasures,
)
from rheostat.model.topology import Topology

Shares = Mapping[str, tuple[int, ...]]  # operator -> the indices of its stages


@dataclass(frozen=True, slots=True)
class Window:
    """The batches that ended in a window, and the last one before it."""

    before: Batch | None
    batches: tuple[Batch, ...]
    realtime: bool
    now: float

    @property
    def ran(self) -> tuple[Batch, ...]:
        """Those in which something was done."""
        return tuple(batch for batch in self.batches if not batch.idle)

    @property
    def input_rows(self) -> float:
        """Source rows that were processed."""
        return sum(batch.input_rows for batch in self.batches)


def operators(
    topology: Topology,
    window: Window,
    stages: Shares,
    parallelism: Mapping[str, int],
    nodes: Mapping[str, str],
    kind: NodeKind,
) -> dict[str, OperatorMeasures]:
    """Rows, CPU and skew of every operator; `nodes` tells on which node an executor runs."""
    measured = {}
    rows = {name: _rows_in(topology, window, stages, name) for name in topology.names}
    for name in topology.names:
        inputs, rows_in = topology.inputs[name], rows[name]
        runs = _runs(window, stages.get(name))
        measured[name] = OperatorMeasures(
            parallelism=runs[-1][0].tasks if runs and runs[-1] else parallelism.get(name, 1),
            received=_arrived(window) if not inputs else rows_in,
            processed=rows_in,
            emitted=_known({s.downstream: rows[s.downstream] for s in topology.outputs[name]}),
            cpu_seconds=_sum(runs, lambda run: run.cpu_seconds),
            # In Real-Time Mode a task runs as long as its batch: waiting and working look the same.
            busy_seconds=None if window.realtime else _sum(runs, lambda run: run.busy_seconds),
            arrivals=tuple(batch.input_rows for batch in window.batches) if not inputs else (),
            skew=_skew(runs, window.realtime),
            instances=_instances(window, runs, nodes, kind) if window.realtime else (),
        )
    return measured


def application(topology: Topology, window: Window, trigger_seconds: float | None) -> ApplicationMeasures:
    """Load, throughput, backlog, lag and the batches' durations."""
    ran, last = window.ran, window.batches[-1] if window.batches else None
    load = _load(window)
    return ApplicationMeasures(
        load={topology.sources[0]: load},
        throughput=_throughput(window),
        backlog=_backlog(window, load),
        lag_seconds=lag(window, load),
        batch_seconds=sum(batch.seconds for batch in ran) / len(ran) if ran else None,
        trigger_seconds=trigger_seconds,
        state_bytes=last.state_bytes if last else None,
        state_rows=last.state_rows if last else None,
        batch_parts=_parts(ran),
        batches=len(ran),
    )


def stage_overhead(batches: Sequence[Batch], stages: int, slots: int) -> float | None:
    """What a stage costs whatever its rows: a batch's time in which no task ran, shared by its stages."""
    rests = []
    for batch in batches:
        if not batch.idle and len(batch.stages) == stages:
            work = sum(run.busy_seconds / max(1, min(run.tasks, slots)) for run in batch.stages)
            rests.append(max(0.0, batch.seconds - work) / len(batch.stages))
    return median(rests) if rests else None


def lag(window: Window, load: float | None) -> float | None:
    """How old the oldest row was when its batch was done, or is by now if none ends."""
    last = window.batches[-1] if window.batches else window.before
    if last is None:
        return None
    previous = window.batches[-2] if len(window.batches) > 1 else window.before
    behind = last.backlog / load if last.backlog and load else 0.0
    if window.realtime:  # rows are done as they come, but for those that wait at the source
        return behind if last.backlog is not None else None
    waited = last.finished - (previous.started if previous and previous is not last else last.started)
    overdue = window.now - last.finished - (last.finished - last.started)
    return behind if last.idle else waited + max(0.0, overdue) + behind


def _backlog(window: Window, load: float | None) -> float | None:
    """Rows that arrived and are not done: in the batch that runs, and what its sources hold beyond it."""
    if not window.batches:
        return None
    last = window.batches[-1]
    if window.realtime:
        return last.backlog
    return None if load is None else load * max(0.0, window.now - last.started) + (last.backlog or 0.0)


def _load(window: Window) -> float | None:
    """Rows/s that arrived, processed yet or not, between the moments at which the source was asked."""
    arrived = _arrived(window)
    first = window.before or (window.batches[0] if len(window.batches) > 1 else None)
    if arrived is None or first is None:
        return None
    last = window.batches[-1]
    seconds = last.finished - first.finished if window.realtime else last.started - first.started
    return arrived / seconds if seconds > 0 else None


def _arrived(window: Window) -> float | None:
    if not window.batches:
        return None
    first, last = window.before, window.batches[-1]
    rows = window.input_rows
    if first is None:  # the first batch of all holds what came before anybody counted
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
    """Rows into an operator: out of the one before it, or, in a plain script, what its stage read."""
    if not window.batches:
        return None
    if not window.ran:
        return 0.0
    inputs = topology.inputs[name]
    counted = inputs[0].upstream if inputs else name
    if any(counted in batch.rows for batch in window.ran):
        return sum(batch.rows.get(counted, 0.0) for batch in window.ran)
    runs = _runs(window, stages.get(name))
    if window.realtime or not runs:
        return None if inputs else window.input_rows
    return sum(rows for batch in runs for _, _, rows in batch[0].each)


def _known(rows: Mapping[str, float | None]) -> dict[str, float]:
    return {name: count for name, count in rows.items() if count is not None}


def _runs(window: Window, indices: tuple[int, ...] | None) -> list[list[StageRun]]:
    """Per batch the runs of an operator's stages; empty for a batch whose stages do not match the plan."""
    if indices is None:
        return []
    return [
        [batch.stages[index] for index in indices]
        for batch in window.ran
        if all(index < len(batch.stages) for index in indices)
    ]


def _sum(runs: list[list[StageRun]], what: Callable[[StageRun], float]) -> float | None:
    return sum(what(run) for batch in runs for run in batch) if runs else None


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


def _parts(ran: tuple[Batch, ...]) -> dict[str, float]:
    names = sorted({name for batch in ran for name in batch.parts})
    return {name: sum(batch.parts.get(name, 0.0) for batch in ran) / len(ran) for name in names}
