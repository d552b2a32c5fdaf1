"""Runs one application inside its driver process, and does to it what a controller asks."""

import time
from collections import deque
from collections.abc import Callable, Mapping
from itertools import pairwise
from threading import Event, RLock, Thread
from typing import Any

from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from rheostat.engines.spark import checks, modes, stages
from rheostat.engines.spark.application import Application
from rheostat.engines.spark.checkpoint import Checkpoint
from rheostat.engines.spark.session import Session
from rheostat.engines.spark.spec import Spec
from rheostat.model.errors import RheostatError, UserError

FIRST_BACKOFF_SECONDS = 1.0
LONGEST_BACKOFF_SECONDS = 60.0
HEALTHY_SECONDS = 60.0  # a query that ran so long starts the back-off anew
START_ATTEMPTS = 3  # of a query that never finished a batch
BOUNDARY_SECONDS = 120.0
PAUSE_SECONDS = 0.5  # to stop within
ARRIVALS_SECONDS = 0.25

current: "Host | None" = None  # the host of this process, if a controller started it


class Host:
    """Holds the session and the query of one application."""

    def __init__(self, session: Session, spec: Spec) -> None:
        self.session, self.spec = session, spec
        self.app: Application | None = None
        self.query: StreamingQuery | None = None
        self.closing = False  # the session is going
        self.lock = RLock()  # held while the query is being replaced
        self._begin, self._stop = Event(), Event()
        self._parallelism: dict[str, int] = {}
        self._notes: list[dict[str, Any]] = []
        self._stages: tuple[str, list[stages.Stage]] | None = None
        self._told_of_others = False
        self._arrived: deque[tuple[int, float]] = deque(maxlen=10_000)

    # -- what runs ---------------------------------------------------------------------------------------

    def run(self, app: Application) -> None:
        """Check an application of the Topology API and, from the controller's word on, run it."""
        modes.check_mode(self.spec.mode, self.spec.trigger_seconds)
        self._check_plan(app)
        checkpoint = Checkpoint(self.session.spark, self.spec.checkpoint)
        checkpoint.check_owner(self._owner(app))
        self.app = app  # from here on the controller can see it
        if app.arrived is not None:
            Thread(target=self._count_arrivals, args=(app.arrived,), name="arrivals", daemon=True).start()
        self._begin.wait()
        with self.lock:
            if self.stopping:
                return
            checkpoint.claim(self._owner(app))
            self._prepare(app)
            try:
                self.start()
            except AnalysisException as error:  # Spark itself refuses the query
                raise UserError(plain(error)) from None
        self._supervise()

    def begin(self, parallelism: Mapping[str, int]) -> None:
        """Start the query: the nodes that it needs are there. A plain script's runs already."""
        self._parallelism = dict(parallelism)
        if self.app is None:
            self.set_parallelism(parallelism)
        self._begin.set()

    def wait(self) -> None:
        """Wait for a script's queries, if it only starts them; one that has none is a mistake."""
        while not self.stopping and (query := self.find_query()) is not None and query.isActive:
            query.awaitTermination()
        if not self.stopping and not self.has_run():
            raise UserError("the script started no streaming query: it must call writeStream...start()")

    @property
    def stopping(self) -> bool:
        """Whether it was told to end."""
        return self._stop.is_set()

    def has_run(self) -> bool:
        """Whether there ever was a query; a short one may have ended before anybody looked."""
        if self.app is not None or self.find_query() is not None:
            return True
        return any(event.get("event") == "query started" for event in self.session.drain())

    def is_over(self) -> bool:
        """Whether Spark itself is stopped, by us, by the script or by its Master."""
        context: Any = self.session.spark.sparkContext
        return self.closing or context._jsc is None or bool(context._jsc.sc().isStopped())

    @property
    def trigger_seconds(self) -> float:
        """Between two batches, or between two checkpoints in Real-Time Mode."""
        wanted = self.app.trigger_seconds if self.app else 0.0
        if self.spec.trigger_seconds is not None:
            return self.spec.trigger_seconds
        return max(wanted, modes.LEAST_REALTIME_SECONDS) if self.spec.mode == "realtime" else wanted

    def start(self, once: bool = False) -> None:
        """Start the query from its checkpoint; `once` for a single batch."""
        if self.app is None:
            raise RheostatError("only an application of the Topology API can be restarted in place")
        spark = self.session.spark
        writer: Any = self.app.writer(self.app.rows(spark)).queryName(self.app.name)
        writer = writer.option("checkpointLocation", self.spec.checkpoint)
        every = f"{self.trigger_seconds} seconds"
        if once:
            writer = writer.trigger(once=True)
        elif self.spec.mode == "realtime":
            writer = writer.trigger(realTime=every)
        else:
            writer = writer.trigger(processingTime=every)
        self.query = writer.start()

    def _check_plan(self, app: Application) -> None:
        frame: Any = app.rows(self.session.spark)
        plan = frame._jdf.queryExecution().analyzed()
        checks.check_plan(plan, self.spec.mode)
        found = bool(checks.stateful_nodes(plan))
        stated = [step.name for step in app.steps if step.stateful]
        if found and not stated:
            raise UserError("an operator keeps state but is not declared so: add stateful=True to it")
        if stated and not found:
            raise UserError(f"operator {stated[0]!r} keeps no state: leave stateful=True out")
        bounds = {(step.min_parallelism, step.max_parallelism) for step in app.steps if step.stateful}
        if len(bounds) > 1:
            raise UserError(
                "stateful operators of one query share one parallelism: give them the same bounds"
            )

    def _owner(self, app: Application) -> dict[str, Any]:
        """What a checkpoint is tied to."""
        stateful = [step.name for step in app.steps if step.stateful]
        return {"name": app.name, "mode": self.spec.mode, "source": app.steps[0].name, "stateful": stateful}

    def _prepare(self, app: Application) -> None:
        """Set every operator's parallelism before the first batch; the state's is what the checkpoint has."""
        checkpoint = Checkpoint(self.session.spark, self.spec.checkpoint)
        if checkpoint.forget_unfinished_rewrite():
            self.note("state", "a rewrite of the state was cut short: taken back")
        for before, step in pairwise(app.steps):
            count = self._parallelism.get(step.name, step.min_parallelism)
            if step.stateful:
                count = checkpoint.partitions(checkpoint.last_committed()) or count
                self.session.spark.conf.set("spark.sql.shuffle.partitions", str(count))
            else:
                self.session.set_keys(before.name, step.keys)
                self.session.set_tasks(before.name, count)

    def _supervise(self) -> None:
        """Wait for the query's end; one that died is started again, later each time."""
        backoff, attempts, worked = FIRST_BACKOFF_SECONDS, 0, False
        while True:
            query, began = self.query, time.monotonic()
            why = _wait(query)
            worked = worked or _has_finished_a_batch(query)
            with self.lock:
                if self.query is not query:
                    continue  # it was replaced
                if self.stopping or why is None:
                    return
            attempts += 1
            if self.is_over():
                raise RheostatError(f"Spark stopped: {why}")
            if attempts >= START_ATTEMPTS and not worked:
                raise RheostatError(f"the query does not start: {why}")
            if time.monotonic() - began > HEALTHY_SECONDS:
                backoff = FIRST_BACKOFF_SECONDS
            backoff = self._start_again(why, backoff)

    def _start_again(self, why: str | None, backoff: float) -> float:
        """Start a query that died, after a while; returns how long to wait the next time."""
        while why is not None:
            self.note("query", f"died: {why}; it starts again in {backoff:g} s")
            self._stop.wait(backoff)
            backoff = min(LONGEST_BACKOFF_SECONDS, 2 * backoff)
            with self.lock:
                if self.stopping:
                    return backoff
                why = self._try_to_start()
        return backoff

    def _try_to_start(self) -> str | None:
        """Start it; why not, if that fails, for then it may work later."""
        try:
            self.start()
        except Exception as error:
            if self.is_over():
                raise
            return plain(error)
        return None

    # -- what a controller asks --------------------------------------------------------------------------

    def _count_arrivals(self, arrived: Callable[[], float]) -> None:
        """Note what the source was offered, for sources whose own offsets do not tell."""
        while not self.stopping:
            self._arrived.append((int(time.time() * 1000), float(arrived())))
            time.sleep(ARRIVALS_SECONDS)

    def note(self, kind: str, text: str) -> None:
        """Keep an event for the controller."""
        self._notes.append({"event": "note", "kind": kind, "text": text, "at": int(time.time() * 1000)})

    def describe(self) -> dict[str, Any]:
        """What runs: enough for a controller to build its topology from."""
        query = self.find_query()
        return {
            "application": self.session.application_id,
            "mode": self.spec.mode,
            "steps": None if self.app is None else [_step(step) for step in self.app.steps],
            "trigger_seconds": self.trigger_seconds if self.app else None,
            "begun": self._begin.is_set(),
            "parallelism": self._parallelism,
            "state_partitions": self._state_partitions(),
            "run": None if query is None else str(query.runId),
            "stages": [stage.as_json() for stage in self._read_stages(query)],
        }

    def report(self) -> dict[str, Any]:
        """Everything that happened since the last report."""
        query = self.find_query()
        self._tell_of_others(query)
        notes, self._notes = self._notes, []
        return {
            "events": [*self.session.drain(), *notes],
            "arrived": [self._arrived.popleft() for _ in range(len(self._arrived))],
            "executors": self.session.executors(),
            "run": None if query is None else str(query.runId),
            "stages": [stage.as_json() for stage in self._read_stages(query)],
            "now": int(time.time() * 1000),
        }

    def set_parallelism(self, targets: Mapping[str, int]) -> None:
        """Change stateless operators from the next batch on."""
        self._parallelism.update(targets)
        if self.app is None:
            query = self.find_query()
            ranks = {stage.operator: stage.shuffle for stage in self._read_stages(query)}
            for name, count in targets.items():
                if query is not None and (rank := ranks.get(name)) is not None:
                    self.session.set_shuffle(str(query.id), rank, count)
            return
        before = {step.name: previous.name for previous, step in pairwise(self.app.steps)}
        for name, count in targets.items():
            self.session.set_tasks(before[name], count)

    def _state_partitions(self) -> int | None:
        """What the checkpoint's state has, if there is any yet."""
        checkpoint = Checkpoint(self.session.spark, self.spec.checkpoint)
        return checkpoint.partitions(checkpoint.last_committed())

    def find_query(self) -> StreamingQuery | None:
        """The query; a plain script's is the first that it started and that still runs."""
        if self.app is None and (self.query is None or not self.query.isActive) and not self.is_over():
            active = self._active()
            self.query = active[0] if active else self.query
        return self.query

    def _active(self) -> list[StreamingQuery]:
        """The queries that run, in the order in which they were started: that of their threads."""
        queries: list[Any] = self.session.spark.streams.active
        return sorted(queries, key=lambda q: int(q._jsq.streamingQuery().queryExecutionThread().getId()))

    def _tell_of_others(self, query: StreamingQuery | None) -> None:
        """Only one query is scaled: say so once where there are more."""
        if self.app is not None or self._told_of_others or query is None:
            return
        others = len(self._active()) - 1
        if others > 0:
            self._told_of_others = True
            name = query.name or f"the first, {query.id}"
            self.note(
                "query", f"the script runs {others + 1} queries: {name} is scaled, others stay as they are"
            )

    def stop(self) -> None:
        """End the application at a batch boundary."""
        self._stop.set()
        self._begin.set()
        with self.lock:
            query = self.find_query()
            if query is not None and query.isActive:
                self.wait_for_boundary()
                query.stop()
            for other in [] if self.app or self.is_over() else self._active():
                other.stop()

    def wait_for_boundary(self) -> None:
        """Return in the pause between two batches, or right after one when there is no pause."""
        query, until = self.query, time.monotonic() + BOUNDARY_SECONDS
        if query is None:
            return
        first = _batch(query)
        while query.isActive and time.monotonic() < until:
            waiting = not query.status["isTriggerActive"] and "Initializing" not in query.status["message"]
            if (waiting and self._pause_lasts()) or _batch(query) != first:
                return
            time.sleep(0.02)

    def _pause_lasts(self) -> bool:
        """Whether the next batch is not about to begin; triggers fall on multiples of their interval."""
        every = self.trigger_seconds
        return not every or every - time.time() % every > min(PAUSE_SECONDS, every / 4)

    def _read_stages(self, query: StreamingQuery | None) -> list[stages.Stage]:
        """The query's stages, read again only for a new run: a rebalance does not change them."""
        if query is None:
            return []
        run = str(query.runId)
        if self._stages is None or self._stages[0] != run:
            jquery: Any = query
            execution = jquery._jsq.streamingQuery().lastExecution()
            if execution is None:
                return []
            self._stages = (run, stages.read(execution.executedPlan()))
        return self._stages[1]


def run(app: Application) -> None:
    """Run an application: elastically when a controller started this process, else at a fixed size."""
    if current is not None:
        current.run(app)
        return
    spark = SparkSession.builder.appName(app.name).getOrCreate()
    writer = app.writer(app.rows(spark)).queryName(app.name)
    writer.trigger(processingTime=f"{app.trigger_seconds} seconds").start().awaitTermination()


def plain(error: Exception) -> str:
    """What a Spark error says, in one line, without its stack, its plan, its place in the SQL and its ids."""
    java = str(error).partition("\n: ")  # Py4J names the call first
    text = (java[2] or java[0]).partition("\n\tat ")[0]
    said = " ".join((_python_error(text) or text).split())
    said = said.partition("terminated with exception: ")[2] or said
    for mark in (" SQLSTATE", " == SQL", " === Streaming Query"):
        said = said.partition(mark)[0]
    return said[:300]


def _python_error(text: str) -> str | None:
    """The last line of a Python traceback, if there is one: the user's function failed, not Spark."""
    below = text.rpartition("Traceback (most recent call last):\n")
    lines = below[2].splitlines() if below[1] else []
    return next((line for line in lines if line and not line[0].isspace()), None)


def _wait(query: StreamingQuery | None) -> str | None:
    """Wait for a query's end; the reason in one line if it died."""
    if query is None:
        return None
    try:
        query.awaitTermination()
    except StreamingQueryException as error:
        return plain(error)
    return None


def _has_finished_a_batch(query: StreamingQuery | None) -> bool:
    return query is not None and query.lastProgress is not None


def _batch(query: StreamingQuery) -> int | None:
    progress = query.lastProgress
    return None if progress is None else int(progress["batchId"])


def _step(step: Any) -> dict[str, Any]:
    return {
        "name": step.name,
        "stateful": step.stateful,
        "min_parallelism": step.min_parallelism,
        "max_parallelism": step.max_parallelism,
    }
