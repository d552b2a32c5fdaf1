"""A Spark session with our Java parts: rules that set parallelism and spread state, a tap that listens."""

import json
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, cast

from pyspark.sql import SparkSession

from rheostat.engines.spark.driver import janino, warm_executors
from rheostat.engines.spark.events import Event, parse_events
from rheostat.engines.spark.protocol import Executor
from rheostat.engines.spark.spec import Spec
from rheostat.model.secrets import properties, write_private


class Session:
    """What can be done to a running Spark application from inside its driver process."""

    def __init__(self, spec: Spec) -> None:
        settings = {"spark.app.name": spec.name, "spark.master": spec.master, **spec.spark_settings()}
        if spec.warms_up:
            settings |= warm_executors.executor_settings(settings, print)
        self._warms_up = "spark.plugins" in settings and warm_executors.PLUGIN in settings["spark.plugins"]
        self.spark = _started(settings, Path(spec.socket).with_name("settings"))
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
        session: Any = self.spark
        set_rules = getattr(session._jsparkSession.experimental(), "extraOptimizations_$eq")
        set_rules(self._jvm.scala.jdk.javaapi.CollectionConverters.asScala(rules).toSeq())
        self._moves = spread_state(self.spark) if spec.spreads_state else None

    def _seed_tap(self, missing: Set[str]) -> None:
        """Add executors to the tap that registered before it listened, as far as Spark's store has them.

        The store is filled by a queue of its own, so an executor may be missing there for a while, too.
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
        """Spark's name for this application."""
        return str(self._context.applicationId)

    def set_tasks(self, after: str, tasks: int) -> None:
        """From the next batch on, what follows this observe() runs as this many tasks."""
        self._tasks.put(after, tasks)

    def set_keys(self, after: str, keys: Sequence[str]) -> None:
        """Send rows with equal keys to the same task of what follows this observe()."""
        names = self._gateway.new_array(self._jvm.java.lang.String, len(keys))
        for index, key in enumerate(keys):
            names[index] = key
        self._keys.put(after, names)

    def set_shuffle(self, query: str, rank: int, tasks: int) -> None:
        """From the next batch on, the script's own shuffle of this rank has this many tasks."""
        self._shuffles.put(f"{query}/{rank}", tasks)

    def listen(self, on: bool) -> None:
        """Switch the tap off or on again, to see what it costs."""
        (self._scala.addSparkListener if on else self._scala.removeSparkListener)(self._tap)

    def drain(self) -> tuple[Event, ...]:
        """Everything the tap heard since the last call."""
        return parse_events(self._tap.drain())

    def moves(self) -> Iterator[str]:
        """Where state went since the last call, in words."""
        while self._moves is not None and (text := self._moves.poll()):
            yield str(text)

    def rehearsals(self) -> Iterator[str]:
        """Which executors ended since the last call because their rehearsal failed, in words."""
        return warm_executors.notes(self._jvm) if self._warms_up else iter(())

    def executors(self) -> tuple[Executor, ...]:
        """The executors that are registered now; `ready` tells whether they have finished warming up."""
        heard = self._heard_of()
        registered = str(self._scala.schedulerBackend().getExecutorIds().mkString(","))
        if missing := {*filter(None, registered.split(","))} - heard.keys():
            self._seed_tap(missing)
            heard = self._heard_of()
        ready = warm_executors.warmed(self._jvm) if self._warms_up else heard.keys()
        return tuple(Executor(**about, ready=name in ready) for name, about in heard.items())

    def _heard_of(self) -> dict[str, dict[str, Any]]:
        return {about["id"]: about for about in json.loads(self._tap.executors())}

    def request(self, total: int) -> bool:
        """Ask the cluster manager to keep this many executors; a lower number ends none."""
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
        """End executors at once; a micro-batch runs their tasks again elsewhere."""
        self._scala.killExecutors(self._jvm.PythonUtils.toSeq(list(executors)))


def spread_state(spark: SparkSession) -> Any:
    """Let state follow the executors of all queries that start from now on; returns a queue of what moved."""
    spread, session = janino.load(spark, "StateSpread"), cast(Any, spark)
    session._jsparkSession.extensions().injectColumnar(spread)  # every query's own session has it from there
    return _field(spread, "moves")


def _started(settings: Mapping[str, str], file: Path) -> SparkSession:
    """A new session; its settings go by a private file, as PySpark would put them on a command line."""
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
