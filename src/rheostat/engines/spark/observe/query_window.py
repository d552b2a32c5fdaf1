"""The open window of one streaming query: its batches since the last observation."""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import TypedDict

from rheostat.analyze.backlog import PATIENCE_SECONDS
from rheostat.engines.spark.observe.application_measures import stage_overhead
from rheostat.engines.spark.observe.batch_window import BatchWindow
from rheostat.engines.spark.observe.batches import Batch, Ledger
from rheostat.engines.spark.observe.partition_costs import partition_seconds, with_partition_costs
from rheostat.engines.spark.protocol import QueryStage, QueryStatus, RunningBatch
from rheostat.engines.spark.query_graph import operator_of
from rheostat.model.observation import ApplicationMeasures

OVERHEADS = 10  # batches that tell the overhead of a stage
LATEST = 20  # batches by which rows are compared with what the source says that it was offered
COLD_BATCHES = 2  # the first of a run show what a JVM costs that loads its classes, not what rows cost


class Progress(TypedDict):
    """Fields of ApplicationMeasures that are known while a batch runs."""

    late_batches: int
    running_seconds: float | None
    tasks_done: int | None
    tasks_left: int | None


class Query:
    """One query's open window: its batches since the last observation."""

    def __init__(self, name: str, operators: Sequence[str], ledger: Ledger, aim_seconds: float) -> None:
        """`aim_seconds`: how long a batch may take where the query's trigger does not say."""
        self.name, self.operators, self.ledger = name, tuple(operators), ledger
        self._aim_seconds = aim_seconds
        self.run: str | None = None
        self.busy = False
        self.stages: tuple[QueryStage, ...] = ()
        self.trigger_seconds: float | None = None
        self.running: RunningBatch | None = None
        self.late = (
            0  # batches in a row that took longer than the trigger, or left rows behind that wait for long
        )
        self.batches: list[Batch] = []
        self.before: Batch | None = None
        self._cold = COLD_BATCHES
        self._changed = 0.0  # a batch that began earlier ran in another size; infinite during a change
        self.overheads: deque[float] = deque(maxlen=OVERHEADS)  # of a stage, in the latest batches of windows
        self.partition_costs: dict[str, deque[float]] = {}  # per stateful operator, in the same batches
        self._latest: tuple[Batch, ...] = ()  # of this run, after the cold ones
        self._judged: tuple[Batch | None, Batch] | None = None  # the last in a window, and the one before it

    def update(self, status: QueryStatus) -> None:
        """Take what the driver reports of the query itself."""
        self.ledger.query = status.id or ""  # not started yet, so no event is its own
        self.run, self.stages, self.busy = status.run, status.stages, status.busy
        self.trigger_seconds, self.running = status.trigger_seconds, status.running
        self.ledger.count_arrivals(status.arrived)

    def add(self, batch: Batch, slots: int) -> None:
        """Take a batch that ended; it ran on this many slots."""
        if not self.ledger.realtime:  # there a task holds its slot for the whole batch
            batch = with_partition_costs(batch, self.stages)
        cold = self._cold > 0 and not batch.idle
        follows = any(batch.number <= last.number + 1 for last in self._latest[-1:])
        if batch.idle and any(last.idle for last in self._latest[-1:]):
            self._latest = self._latest[:-1]  # a long silence must not push out the batches before it
        self._latest = (*self._latest, batch)[-LATEST:] if follows and not cold else (batch,)
        if batch.doubt:
            self._latest = ()
        self._count_late(batch)
        if cold:
            self._cold -= 1
            batch = replace(batch, cold=True)
        if batch.started < self._changed:
            self.before = batch
        else:
            if not batch.idle and not cold:
                self._judged = (self.batches[-1] if self.batches else self.before, batch)
            self.batches.append(batch)
            overhead = None if cold else stage_overhead(batch, len(self.stages), slots)
            self.overheads += [overhead] if overhead is not None else []
            if not cold:
                self._add_partition_costs(batch)

    def _add_partition_costs(self, batch: Batch) -> None:
        for name, indices in self.shares().items():
            if batch.idle or len(batch.stages) != len(self.stages):
                return
            cost = partition_seconds([batch.stages[index] for index in indices])
            if cost is not None:
                self.partition_costs.setdefault(name, deque(maxlen=OVERHEADS)).append(cost)

    @property
    def aim_seconds(self) -> float:
        """How long a batch may take."""
        return self.trigger_seconds or self._aim_seconds

    def running_seconds(self, now: float) -> float | None:
        """Since when a batch runs; None: none does."""
        return None if self.running is None else max(0.0, now - self.ledger.moment(self.running.since))

    def progress(self, now: float) -> Progress:
        """The batch that runs, and how many in a row were late, or already are.

        In Real-Time Mode a batch is a span of time: there what runs says nothing.
        """
        if self.ledger.realtime:
            return Progress(late_batches=self.late, running_seconds=None, tasks_done=None, tasks_left=None)
        running, seconds = self.running, self.running_seconds(now)
        late = self.late + ((seconds or 0.0) > self.aim_seconds)
        if running is None:
            return Progress(late_batches=late, running_seconds=None, tasks_done=None, tasks_left=None)
        ahead = sum(stage.tasks or 0 for stage in self.stages[running.stages :])  # stages yet to come
        left = running.tasks - running.done + ahead
        return Progress(late_batches=late, running_seconds=seconds, tasks_done=running.done, tasks_left=left)

    def at_work(self, now: float) -> ApplicationMeasures:
        """What is known of it without a finished batch."""
        return ApplicationMeasures(trigger_seconds=self.aim_seconds, **self.progress(now))

    def _count_late(self, batch: Batch) -> None:
        if not batch.idle and not batch.doubt:
            self.late = self.late + 1 if self._is_late(batch) else 0
        elif batch.idle:
            self.late = 0

    def _is_late(self, batch: Batch) -> bool:
        if not self.ledger.realtime:
            return batch.seconds > self.aim_seconds
        return (batch.backlog or 0.0) * batch.seconds > PATIENCE_SECONDS * batch.input_rows

    def begin_change(self) -> None:
        """From now on batches run in neither the old nor the new size, until `close` ends the change."""
        self._changed = math.inf

    def close(self, changed: float | None = None) -> None:
        """Begin a new window, which counts from the last batch of this one."""
        if self.batches:
            self.before = self.batches[-1]
        self.batches = []
        if changed is not None:
            self._changed = changed

    def start_anew(self) -> None:
        """Forget the batches of the old driver: a new one runs the query now."""
        self.batches, self.before, self._cold = [], None, COLD_BATCHES
        self._latest, self._judged, self.busy = (), None, False
        self.running, self.late = None, 0

    def window(self, realtime: bool, start: float, now: float, *, beside_others: bool = False) -> BatchWindow:
        """The open window as a value.

        While a long micro-batch runs, the cost of the last batch is the best that is known, and the load may
        have grown meanwhile. A batch that ran across a change tells nothing. Beside others a query of a long
        trigger counts with its last batch until the next is due; they cannot wait for it.
        """
        offered, seconds = tuple(self.ledger.arrivals), self.running_seconds(now)
        window = BatchWindow(
            self.before,
            tuple(self.batches),
            realtime,
            now,
            start,
            offered,
            self._latest,
            busy=self.busy,
            due_seconds=self.aim_seconds,
            running_since=None if seconds is None else now - seconds,
        )
        if window.ran or window.quiet:
            return window
        if offered or self.running is not None:
            return self.standing_in(window)
        if beside_others and self._waits_for_its_trigger(now):
            return replace(self.standing_in(window), resting=True)
        return window

    def _waits_for_its_trigger(self, now: float) -> bool:
        last = self.batches[-1] if self.batches else self.before
        return last is not None and now < last.started + 2 * (self.trigger_seconds or 0.0)

    def standing_in(self, window: BatchWindow) -> BatchWindow:
        """The window with the last batch that showed what a row costs, where there is one."""
        if window.realtime or self._judged is None:
            return window
        before, last = self._judged
        since = (
            batch for batch in (window.before, *window.batches) if batch and batch.started > last.started
        )
        idle = tuple(batch for batch in since if batch.idle)
        return replace(window, before=before, batches=(last, *idle), stale=True)

    def shares(self) -> dict[str, tuple[int, ...]]:
        """The stages of each operator; one that shares another's stage has none of its own."""
        if not self.stages:
            return {}
        owned: dict[str, list[int]] = {name: [] for name in self.operators}
        by_owner = sorted(enumerate(self.stages), key=lambda pair: pair[1].operator not in self.operators)
        for index, stage in by_owner:  # first its own, then the one in which it reads a topic
            owned.setdefault(operator_of(stage.operator), []).append(index)
        return {name: tuple(indices) for name, indices in owned.items()}
