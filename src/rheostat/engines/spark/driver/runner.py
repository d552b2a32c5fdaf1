"""Runs an application inside its driver process, and changes it at the controller's request."""

import time
from collections.abc import Mapping
from itertools import pairwise
from threading import Event, Thread
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from rheostat.engines.spark import modes
from rheostat.engines.spark.driver import plan_checks, query_topics, script_state
from rheostat.engines.spark.driver.application import Application, Step
from rheostat.engines.spark.driver.builder import Builder, parts
from rheostat.engines.spark.driver.error_text import plain
from rheostat.engines.spark.driver.query_topics import QueryTopics
from rheostat.engines.spark.driver.script import Script
from rheostat.engines.spark.driver.session import Session
from rheostat.engines.spark.driver.supervisor import Supervisor
from rheostat.engines.spark.events import Note, QueryStarted
from rheostat.engines.spark.protocol import Description, QueryStatus, Report, RunningBatch, StateRewrite
from rheostat.engines.spark.protocol import Step as StepFacts
from rheostat.engines.spark.query_graph import QueryChain
from rheostat.engines.spark.spec import Spec
from rheostat.model.documents import storable
from rheostat.model.errors import RheostatError, UserError

current: "Runner | None" = None  # the runner of this process, if a controller started it


class Runner:
    """Holds the session and the queries of one application."""

    def __init__(self, session: Session, spec: Spec) -> None:
        self.session, self.spec = session, spec
        self.app: Application | None = None  # None: a plain script
        self.script = Script(session, spec, self.note, self.has_ended)
        self.queries: dict[str, Supervisor] = {}
        self.builder: Builder | None = None
        self.closing = False  # the session is being stopped
        self.stopping = Event()
        self._begin = Event()
        self._parallelism: dict[str, int] = {}
        self._notes: list[Note] = []
        self._reserved = 0
        self._ends: dict[str, query_topics.TopicEnds] = {}  # of the queries that read Kafka
        self._rewrites: tuple[StateRewrite, ...] = ()

    # -- what runs ---------------------------------------------------------------------------------------

    def rewrite_state(self) -> None:
        """Rewrite the state of a script, as its controller wants it, before it starts."""
        for wanted in self.spec.rewrites:
            self._rewrites += (script_state.rewrite(self.session.spark, wanted),)

    def run(self, app: Application) -> None:
        """Check an application of the Topology API, and run it once the controller requests it."""
        modes.check_mode(self.spec.mode, self.spec.trigger_seconds, self.spec.settings)
        linked = any(part.reads for part in parts(app))
        between = QueryTopics(self.session.spark, self.spec, app.link_partitions) if linked else None
        self.builder = Builder(app, self.session.spark, between)
        for part in self.builder.parts:
            self._check_plan(app, part)
            supervisor = self._supervisor(app, part)
            supervisor.checkpoint.check_owner(self._owner(app, part))
            self.queries[part.name] = supervisor
            if not part.reads and (options := self._subscription(part)) is not None:
                self._ends[part.name] = query_topics.TopicEnds(self.session.spark, options)
        self._reserved = self.builder.subscriptions() if self.spec.mode == "realtime" else 0
        self.app = app  # visible to the controller from now on
        self._begin.wait()
        if self.stopping.is_set():
            return
        self.builder.create_topics()
        for part in self.builder.parts:
            self._start(app, part)
        self._supervise()

    def _start(self, app: Application, part: QueryChain) -> None:
        supervisor = self.queries[part.name]
        with supervisor.lock:
            supervisor.checkpoint.claim(self._owner(app, part))
            self._prepare(app, part)
            try:
                supervisor.start()
            except AnalysisException as error:  # Spark refuses the query
                raise UserError(plain(error)) from None
        if part.reads and (options := self._subscription(part)) is not None:
            # Its topics exist now.
            self._ends[part.name] = query_topics.TopicEnds(self.session.spark, options)
        ends = self._ends.get(part.name)
        arrived = ends.total if ends else app.steps[part.name].arrived
        if arrived is not None:
            supervisor.count(arrived)

    def _supervise(self) -> None:
        """Supervise every query, each in its own thread."""
        if len(self.queries) == 1:
            next(iter(self.queries.values())).supervise()
            return
        threads = [
            Thread(target=query.supervise, name=f"query-{query.name}") for query in self.queries.values()
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def begin(self, parallelism: Mapping[str, int]) -> None:
        """Start the queries, now that their nodes are ready. Those of a plain script already run."""
        self._parallelism = dict(parallelism)
        if self.app is None:
            self.set_parallelism(parallelism)
        self._begin.set()

    def wait(self) -> None:
        """Wait for a script's queries, if it only starts them; refuse a script without any."""
        if self.stopping.is_set():
            self.script.await_end()
        while not self.stopping.is_set() and self.app is None and not self.is_over():
            query = self.script.find_query()
            if query is None or not query.isActive:
                break
            query.awaitTermination()
        if self.script.refusal is not None:
            raise self.script.refusal
        if not self.stopping.is_set() and not self.has_run():
            raise UserError("the script started no streaming query: it must call writeStream...start()")

    def mend(self, error: Exception) -> bool:
        """Mend what made a script fail, if it is a rewrite that a killed run left half-done."""
        if self.app is not None or self.stopping.is_set() or not self.script.roll_back(error):
            return False
        self.note(
            "state", "a rewrite of the state was cut short earlier: rolled back, and the script starts again"
        )
        return True

    def has_run(self) -> bool:
        """Whether a query was ever started; a short query may already have ended."""
        if self.app is not None or (not self.is_over() and self.script.find_query() is not None):
            return True
        return any(isinstance(event, QueryStarted) for event in self.session.drain())

    def is_over(self) -> bool:
        """Whether Spark was stopped, by us, by the script or by its Master."""
        context: Any = self.session.spark.sparkContext
        return self.closing or context._jsc is None or bool(context._jsc.sc().isStopped())

    def has_ended(self, seconds: float) -> bool:
        """Wait for so long; whether the application is being stopped, or Spark is."""
        return self.stopping.wait(seconds) or self.is_over()

    def _trigger_seconds(self, app: Application) -> float:
        """The time between two batches, or between two checkpoints in Real-Time Mode."""
        if self.spec.trigger_seconds is not None:
            return self.spec.trigger_seconds
        return max(app.trigger_seconds, modes.least_trigger(self.spec.mode, self.spec.settings))

    def _supervisor(self, app: Application, part: QueryChain) -> Supervisor:
        builder = self.builder
        assert builder is not None
        alone = len(builder.parts) == 1
        every = f"{self._trigger_seconds(app)} seconds"
        stateful = next((app.steps[name] for name in part.steps if app.steps[name].stateful), None)
        supervisor = Supervisor(
            self,
            part.name,
            app.name if alone else f"{app.name}.{part.name}",
            self.spec.checkpoint if alone else f"{self.spec.checkpoint}/{part.name}",
            {"realTime" if self.spec.mode == "realtime" else "processingTime": every},
            lambda: builder.writer(part),
            stateful.min_parallelism if stateful else None,
        )
        supervisor.alone = alone
        return supervisor

    def _check_plan(self, app: Application, part: QueryChain) -> None:
        assert self.builder is not None
        frame: Any = self.builder.rows(part)
        plan = frame._jdf.queryExecution().analyzed()
        plan_checks.check_plan(plan, self.spec.mode)
        keeps_state = bool(plan_checks.stateful_nodes(plan))
        declared = [name for name in part.steps if app.steps[name].stateful]
        if keeps_state and not declared:
            raise UserError("an operator keeps state but is not declared so: add stateful=True to it")
        if declared and not keeps_state:
            raise UserError(f"operator {declared[0]!r} keeps no state: leave stateful=True out")
        bounds = {(app.steps[name].min_parallelism, app.steps[name].max_parallelism) for name in declared}
        if len(bounds) > 1:
            raise UserError(
                "stateful operators of one query share one parallelism: give them the same bounds"
            )

    def _subscription(self, part: QueryChain) -> dict[str, str] | None:
        assert self.builder is not None
        frame: Any = self.builder.rows(part)
        return query_topics.subscription(frame._jdf.queryExecution().analyzed())

    def _owner(self, app: Application, part: QueryChain) -> dict[str, Any]:
        """The identity that is written into a checkpoint."""
        stateful = [name for name in part.steps if app.steps[name].stateful]
        return {"name": app.name, "mode": self.spec.mode, "source": part.name, "stateful": stateful}

    def _prepare(self, app: Application, part: QueryChain) -> None:
        """Set every operator's parallelism before the first batch; for state, as in the checkpoint."""
        supervisor = self.queries[part.name]
        checkpoint = supervisor.checkpoint
        if checkpoint.forget_unfinished_rewrite():
            self.note("state", "a rewrite of the state was cut short: rolled back")
        for before, name in pairwise(part.markers):
            step = app.steps[name]
            count = self._parallelism.get(name, step.min_parallelism)
            if step.stateful:
                supervisor.state_partitions = checkpoint.partitions(checkpoint.last_committed()) or count
            else:
                self.session.set_keys(before, step.keys)
                self.session.set_tasks(before, count)

    # -- requests of the controller ----------------------------------------------------------------------

    def note(self, kind: str, text: str) -> None:
        """Record an event for the controller."""
        self._notes.append(Note(kind, storable(text), int(time.time() * 1000)))

    def describe(self) -> Description:
        """What runs, in enough detail for the controller to build its topology."""
        app = self.app
        return Description(
            steps=None if app is None else self._steps(app),
            trigger_seconds=self._trigger_seconds(app) if app else None,
            begun=self._begin.is_set(),
            parallelism=self._parallelism,
            state=self._state_partitions(),
            reserved=self._reserved,
            queries=self._describe_queries(),
            rewrites=self._rewrites,
        )

    def report(self) -> Report:
        """Everything that happened since the last report."""
        events = (
            self.session.drain()
        )  # before the queries are listed, so that the list has the query of every event
        queries = self._report_queries(self.session.running())
        for text in self.session.moves():
            self.note("state", text)
        for text in self.session.rehearsals():
            self.note("executor", text)
        notes, self._notes = self._notes, []
        return Report((*events, *notes), self.session.executors(), queries, self.session.served())

    def _describe_queries(self) -> tuple[QueryStatus, ...]:
        if self.app is not None:
            return tuple(query.describe({}) for query in self.queries.values())
        return () if self.is_over() else self.script.describe({})

    def _report_queries(self, running: Mapping[str, RunningBatch]) -> tuple[QueryStatus, ...]:
        if self.app is not None:
            return tuple(query.report(running) for query in self.queries.values())
        return () if self.is_over() else self.script.report(running)

    def _steps(self, app: Application) -> tuple[StepFacts, ...]:
        assert self.builder is not None
        part_of = {name: part.name for part in self.builder.parts for name in part.steps}
        return tuple(
            _step(step, part_of[name], None if step.inputs else self._ends.get(name))
            for name, step in app.steps.items()
        )

    def _state_partitions(self) -> dict[str, int]:
        """The number of state partitions of each operator, if its checkpoint has any yet."""
        partitions: dict[str, int] = {}
        for part in self.builder.parts if self.builder and self.app else ():
            checkpoint = self.queries[part.name].checkpoint
            if count := checkpoint.partitions(checkpoint.last_committed()):
                partitions |= {
                    name: count for name in part.steps if self.app and self.app.steps[name].stateful
                }
        return partitions

    def set_parallelism(self, targets: Mapping[str, int]) -> None:
        """Change stateless operators from the next batch on."""
        self._parallelism.update(targets)
        if self.app is None or self.builder is None:
            self.script.set_parallelism(targets)
            return
        before = {name: m for part in self.builder.parts for m, name in pairwise(part.markers)}
        for name, count in targets.items():
            self.session.set_tasks(before[name], count)

    def query_of(self, operator: str) -> Supervisor:
        """The query in which an operator of the Topology API runs."""
        for part in self.builder.parts if self.builder else ():
            if operator in part.steps:
                return self.queries[part.name]
        raise RheostatError(f"no query has an operator {operator!r}")

    def stop(self) -> None:
        """Stop the application at batch boundaries."""
        self.stopping.set()
        self._begin.set()
        ending = [Thread(target=query.stop) for query in self.queries.values()]
        for thread in ending:
            thread.start()
        for thread in ending:
            thread.join()
        if self.app is None and not self.is_over():
            self.script.stop()


def run(app: Application) -> None:
    """Run an application: scaled if a controller started this process, otherwise at a fixed size."""
    if current is not None:
        current.run(app)
        return
    if len(parts(app)) > 1:
        raise UserError("an application that fans out or in runs under `rheostat run ... --kafka HOST:PORT`")
    spark = SparkSession.builder.appName(app.name).getOrCreate()
    builder = Builder(app, spark, None)
    writer = builder.writer(builder.parts[0]).queryName(app.name)
    writer.trigger(processingTime=f"{app.trigger_seconds} seconds").start().awaitTermination()


def _step(step: Step, query: str, ends: query_topics.TopicEnds | None) -> StepFacts:
    """A step, for the controller; a Kafka source has as many tasks as its topics have partitions."""
    return StepFacts(
        name=step.name,
        inputs=tuple(step.inputs),
        query=query,
        stateful=step.stateful,
        min_parallelism=step.min_parallelism if ends is None else len(ends),
        max_parallelism=step.max_parallelism if ends is None else len(ends),
    )
