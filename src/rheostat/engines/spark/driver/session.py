"""A Spark session with our Java parts: rules for parallelism and state, a tap that records events."""

import json
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, cast

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from rheostat.engines.spark.driver import (
    executor_plugins,
    executor_vitals,
    janino,
    service_times,
    warm_executors,
)
from rheostat.engines.spark.events import Event, parse_events
from rheostat.engines.spark.protocol import Executor, RunningBatch, ServiceTime
from rheostat.engines.spark.spec import Spec
from rheostat.model.secrets import properties, write_private


class Session:
    """Controls a running Spark application from inside its driver process."""

    def __init__(self, spec: Spec) -> None:
        settings = {"spark.app.name": spec.name, "spark.master": spec.master, **spec.spark_settings()}
        settings |= executor_plugins.executor_settings(
            settings, print, spec.warms_up, spec.mode == "realtime"
        )
        plugins = settings.get("spark.plugins", "").split(",")
        self._warms_up = warm_executors.PLUGIN in plugins
        self._tells = executor_vitals.PLUGIN in plugins
        self._times = service_times.PLUGIN in plugins
        self.spark = _start_session(settings, Path(spec.socket).with_name("settings"))
        context: Any = self.spark.sparkContext
        context.setLogLevel("WARN")
        self._context, self._jvm, self._gateway = context, context._jvm, context._gateway
        self._scala = context._jsc.sc()
        self._tap = janino.load(self.spark, "StageTap")
        self._scala.addSparkListener(self._tap)
        rule = janino.load(self.spark, "LiveParallelism")
        self._tasks, self._keys, self._shuffles = (
            _field(rule, name) for name in ("tasks", "keys", "shuffles")
        )
        rules = self._jvm.java.util.ArrayList()
        rules.add(rule)
        self._rules = self._jvm.scala.jdk.javaapi.CollectionConverters.asScala(rules).toSeq()
        session: Any = self.spark
        self._set_rules(session._jsparkSession.experimental())
        self._moves = spread_state(self.spark) if spec.spreads_state else None

    def _seed_tap(self, missing: Set[str]) -> None:
        """Add to the tap the executors that registered before it listened, if Spark's store has them.

        The store is updated by its own queue, so an executor may be missing there for a while, too.
        """
        stored = self._scala.statusStore().executorList(True)
        for executor in (stored.apply(index) for index in range(stored.size())):
            page = executor.executorLogs().get("stdout")
            if executor.id() in missing:
                self._tap.seed(
                    executor.id(),
                    executor.hostPort().split(":")[0],
                    executor.totalCores(),
                    page.get() if page.isDefined() else None,
                )

    @property
    def application_id(self) -> str:
        """Spark's id of this application."""
        return str(self._context.applicationId)

    def _set_rules(self, methods: Any) -> None:
        getattr(methods, "extraOptimizations_$eq")(self._rules)

    def adopt(self, query: StreamingQuery) -> None:
        """Let our rule change the parallelism of a query that another session of the script started, too."""
        wrapped: Any = query
        own = wrapped._jsq.streamingQuery().sparkSessionForStream()
        methods = own.sessionState().experimentalMethods()
        if methods.extraOptimizations().isEmpty():
            self._set_rules(methods)

    def set_tasks(self, after: str, tasks: int) -> None:
        """Run what follows this observe() with this many tasks, from the next batch on."""
        self._tasks.put(after, tasks)

    def set_keys(self, after: str, keys: Sequence[str]) -> None:
        """Send rows with equal keys to the same task after this observe()."""
        names = self._gateway.new_array(self._jvm.java.lang.String, len(keys))
        for index, key in enumerate(keys):
            names[index] = key
        self._keys.put(after, names)

    def set_shuffle(self, query: str, rank: int, tasks: int) -> None:
        """Give the script's own shuffle of this rank this many tasks, from the next batch on."""
        self._shuffles.put(f"{query}/{rank}", tasks)

    def listen(self, on: bool) -> None:
        """Switch the tap on or off, to measure its cost."""
        (self._scala.addSparkListener if on else self._scala.removeSparkListener)(self._tap)

    def drain(self) -> tuple[Event, ...]:
        """All events that the tap recorded since the last call."""
        return parse_events(self._tap.drain())

    def served(self) -> tuple[ServiceTime, ...]:
        """For how long rows held the tasks that ended since the last call."""
        return service_times.drain(self._jvm) if self._times else ()

    def running(self) -> dict[str, RunningBatch]:
        """The batches that run, by the id of their query."""
        return {query: RunningBatch(**facts) for query, facts in json.loads(self._tap.running()).items()}

    def moves(self) -> Iterator[str]:
        """Messages about state that moved since the last call."""
        while self._moves is not None and (text := self._moves.poll()):
            yield str(text)

    def rehearsals(self) -> Iterator[str]:
        """Messages about executors that ended since the last call because their rehearsal failed."""
        return warm_executors.notes(self._jvm) if self._warms_up else iter(())

    def executors(self) -> tuple[Executor, ...]:
        """The registered executors; `ready` says whether they have finished warming up."""
        tapped = self._tapped_executors()
        registered = str(self._scala.schedulerBackend().getExecutorIds().mkString(","))
        if missing := {*filter(None, registered.split(","))} - tapped.keys():
            self._seed_tap(missing)
            tapped = self._tapped_executors()
        ready = warm_executors.warmed(self._jvm) if self._warms_up else tapped.keys()
        vitals = executor_vitals.latest(self._jvm) if self._tells else {}
        return tuple(
            Executor(**facts, ready=name in ready, vitals=vitals.get(name)) for name, facts in tapped.items()
        )

    def _tapped_executors(self) -> dict[str, dict[str, Any]]:
        return {facts["id"]: facts for facts in json.loads(self._tap.executors())}

    def request(self, total: int) -> bool:
        """Ask the cluster manager to keep this many executors; a lower number stops none."""
        none: Mapping[str, int] = {}
        return bool(self._scala.requestTotalExecutors(total, 0, self._jvm.PythonUtils.toScalaMap(none)))

    def decommission(self, executors: Sequence[str]) -> None:
        """Let executors finish their tasks and leave."""
        backend = self._scala.schedulerBackend()
        info = self._jvm.org.apache.spark.scheduler.ExecutorDecommissionInfo(
            "scaled in", self._jvm.scala.Option.empty()
        )
        for executor in executors:
            backend.decommissionExecutor(executor, info, False, False)

    def kill(self, executors: Sequence[str]) -> None:
        """Stop executors immediately; a micro-batch runs their tasks again elsewhere."""
        self._scala.killExecutors(self._jvm.PythonUtils.toSeq(list(executors)))


def spread_state(spark: SparkSession) -> Any:
    """Let the state of all queries started from now on follow the executors; return a queue of messages."""
    spread, session = janino.load(spark, "StateSpread"), cast(Any, spark)
    session._jsparkSession.extensions().injectColumnar(spread)  # every query's own session inherits it
    return _field(spread, "moves")


def _start_session(settings: Mapping[str, str], file: Path) -> SparkSession:
    """A new session; its settings go through a private file, as PySpark would put them on a command line."""
    write_private(file, properties(settings))
    given = os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell")
    os.environ["PYSPARK_SUBMIT_ARGS"] = (
        f"--load-spark-defaults --properties-file {shlex.quote(str(file))} {given}"
    )
    try:
        return SparkSession.builder.getOrCreate()
    finally:
        os.environ["PYSPARK_SUBMIT_ARGS"] = given
        file.unlink(missing_ok=True)


def _field(instance: Any, name: str) -> Any:
    return instance.getClass().getField(name).get(instance)
