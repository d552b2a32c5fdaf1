"""Starts applications on the shared embedded cluster, and removes them again."""

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psutil

from rheostat.control.clock import SystemClock
from rheostat.engines.spark.driver.warm_executors import BUDGET
from rheostat.engines.spark.driver_process import DriverProcess
from rheostat.engines.spark.engine import SparkEngine
from rheostat.engines.spark.modes import LEAST_SETTING
from rheostat.engines.spark.observe.batches import Batch
from rheostat.engines.spark.spec import Spec
from rheostat.model.configuration import Configuration, NodeKind
from rheostat.model.decision import Plan
from rheostat.model.observation import Observation
from rheostat.providers.local import LocalProvider
from rheostat.services.cleanup_process import members
from rheostat.services.kafka_broker import connector_jars
from rheostat.services.local_cluster import LocalCluster, Worker
from tests import jvm

APPS = Path(__file__).parent / "apps"
KEYS = 50  # of the applications that keep totals
REALTIME_SECONDS = 3.0  # between two checkpoints in Real-Time Mode, where Spark's default is 5


@contextmanager
def application(
    cluster: LocalCluster,
    folder: Path,
    script: str,
    *arguments: str,
    parallelism: Mapping[str, int],
    mode: str = "microbatch",
    kind: NodeKind = NodeKind(cores=1.0, slots=2, memory_mb=1024.0),
    more_kinds: tuple[NodeKind, ...] = (),
    nodes: int = 1,
    kafka: str | None = None,
    settings: Mapping[str, str] = {},
) -> Iterator[SparkEngine]:
    """Run an application with its own nodes on the shared Master."""
    provider = LocalProvider(cluster, (kind, *more_kinds))
    began_at = time.time()
    clock = SystemClock(began_at)
    links: list[DriverProcess] = []

    def start(spec: Spec) -> DriverProcess:
        spec = replace(spec, socket=DriverProcess.socket_path())
        links.append(DriverProcess.start(spec, cluster.keep_session))
        return links[-1]

    try:
        provider.wait([provider.order(kind).name for _ in range(nodes)])
        spec = Spec(
            name=script,
            script=str(APPS / f"{script}.py"),
            master=cluster.url,
            folder=str(folder),
            socket="",
            checkpoint=str(folder / "checkpoint"),
            mode=mode,
            arguments=arguments,
            slots=kind.slots // kind.executors,
            executor_memory_mb=512,
            trigger_seconds=REALTIME_SECONDS if mode == "realtime" else None,
            kafka=kafka,
            settings={
                **jvm.SETTINGS,
                BUDGET: "0.5",
                **({LEAST_SETTING: f"{REALTIME_SECONDS:g}s"} if mode == "realtime" else {}),
                **({"spark.jars": ",".join(map(str, connector_jars()))} if kafka else {}),
                **settings,
            },
        )
        engine = SparkEngine(start(spec), provider, clock, began_at, start)
        engine.begin(Configuration(dict(parallelism), nodes * kind.executors, nodes))
        yield engine
    finally:
        for link in links[-1:]:
            link.stop()
        for node in provider.nodes():
            provider.release(node.name)


def names(engine: SparkEngine) -> tuple[str, ...]:
    """The nodes that an engine has, oldest first."""
    return tuple(node.name for node in engine.provider.nodes())


def executors_on(node: Worker) -> list[psutil.Process]:
    """The executors' processes on a node."""
    result = []
    for pid in members(node.process.pid):
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(pid)
            if any("CoarseGrainedExecutorBackend" in word for word in process.cmdline()):
                result.append(process)
    return result


def plan(engine: SparkEngine, nodes: int | None = None, **parallelism: int) -> Plan:
    """Return a plan that changes the running configuration."""
    now = engine.configuration
    count = now.nodes if nodes is None else nodes
    executors = count * engine.kinds[0].executors
    target = Configuration({**now.parallelism, **parallelism}, executors, count)
    return Plan(1, engine.now(), now, target, "a test wants it", changes=target != now)


def wait_for_plans(engine: SparkEngine, limit: float = 240.0) -> None:
    """Wait until a batch with rows of each query of a plain script is planned."""

    def known() -> bool:
        statuses = engine.monitor.statuses
        known = [query.stages and all(stage.tasks for stage in query.stages) for query in statuses]
        return bool(known) and all(known)

    _poll_until(engine, known, "plans", limit)


def observe_batches(engine: SparkEngine, batches: int, limit: float = 240.0) -> Observation:
    """Close the window and observe the next one once it holds this many batches; with the events of both."""
    before = engine.observe().events
    observed = observe_open_window(engine, batches, limit)
    return replace(observed, events=(*before, *observed.events))


def observe_open_window(engine: SparkEngine, batches: int, limit: float = 240.0) -> Observation:
    """Observe the window that is open once it holds this many batches."""

    def enough() -> bool:
        return sum(map(len, _batches(engine))) >= batches

    _poll_until(engine, enough, f"{batches} batches", limit)
    return engine.observe()


def observe_span(engine: SparkEngine, seconds: float, limit: float = 240.0) -> Observation:
    """Close the window and observe the next one once its batches began over this many seconds.

    A source may count whole seconds, and a busy machine runs few long batches: rates are as exact as the
    time between the first and the last trigger is long, however many batches there are.
    """
    engine.observe()

    def enough() -> bool:
        return all(item and item[-1].started - item[0].started >= seconds for item in _batches(engine))

    _poll_until(engine, enough, f"batches over {seconds} s", limit)
    return engine.observe()


def _batches(engine: SparkEngine) -> list[list[Batch]]:
    """Return the batches with rows in the open window of each query."""
    return [[batch for batch in q.batches if not batch.idle] for q in engine.monitor.queries.values()]


def _poll_until(engine: SparkEngine, holds: Callable[[], bool], what: str, limit: float) -> None:
    until = time.monotonic() + limit
    while not holds():
        assert time.monotonic() < until, f"not within {limit:g} s: {what}"
        time.sleep(0.2)
        engine.poll()


def newest_batch(engine: SparkEngine) -> Batch:
    """Return the last batch with rows."""
    return next(batch for batch in reversed(engine.monitor.recent) if not batch.idle)


def check_totals(folder: Path) -> int:
    """Check that every key's last total is the sum of rows 0..n-1: no row lost or doubled; return n."""
    latest: dict[int, tuple[int, int, int]] = {}
    for file in sorted(folder.glob("*.json"), key=lambda path: int(path.stem)):
        for line in file.read_text().splitlines():
            row = json.loads(line)
            latest[row["key"]] = (row["n"], row["sum"], row["most"])
    rows = sum(n for n, _, _ in latest.values())
    assert rows == max(most for _, _, most in latest.values()) + 1
    for key, (n, total, _) in latest.items():
        expected = range(key, rows, KEYS)
        assert (n, total) == (len(expected), sum(expected)), key
    return rows
