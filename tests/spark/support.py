"""Starts applications on the shared embedded cluster, and takes them away again."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rheostat.control.clock import SystemClock
from rheostat.engines.spark.engine import SparkEngine
from rheostat.engines.spark.link import Link
from rheostat.engines.spark.machines import LocalMachines
from rheostat.engines.spark.modes import LEAST_SETTING
from rheostat.engines.spark.spec import Spec
from rheostat.engines.spark.warm import BUDGET
from rheostat.infrastructure.kafka import connector_jars
from rheostat.infrastructure.local import LocalProvider
from rheostat.model.configuration import Configuration, NodeKind
from rheostat.model.decision import Plan
from rheostat.model.observation import Observation

APPS = Path(__file__).parent / "apps"
REALTIME_SECONDS = 3.0  # between two checkpoints in Real-Time Mode, where Spark's default is 5


@contextmanager
def application(
    cluster: LocalProvider,
    folder: Path,
    script: str,
    *arguments: str,
    parallelism: Mapping[str, int],
    mode: str = "microbatch",
    kind: NodeKind = NodeKind(cores=1.0, slots=2, memory_mb=1024.0),
    nodes: int = 1,
    kafka: str | None = None,
    settings: Mapping[str, str] = {},
) -> Iterator[SparkEngine]:
    """One application with its own nodes on the shared Master."""
    machines = LocalMachines(cluster, kind)
    began_at = time.time()
    clock = SystemClock(began_at)
    links: list[Link] = []

    def start(spec: Spec) -> Link:
        links.append(Link.start(spec))
        cluster.keep_session(links[-1].pid)
        return links[-1]

    try:
        machines.add(nodes)
        spec = Spec(
            name=script,
            script=str(APPS / f"{script}.py"),
            master=cluster.url,
            folder=str(folder),
            socket=Link.socket_path(),
            checkpoint=str(folder / "checkpoint"),
            mode=mode,
            arguments=arguments,
            slots=kind.slots // kind.executors,
            executor_memory_mb=512,
            trigger_seconds=REALTIME_SECONDS if mode == "realtime" else None,
            kafka=kafka,
            settings={
                BUDGET: "0.5",
                **({LEAST_SETTING: f"{REALTIME_SECONDS:g}s"} if mode == "realtime" else {}),
                **({"spark.jars": ",".join(map(str, connector_jars()))} if kafka else {}),
                **settings,
            },
        )
        engine = SparkEngine(start(spec), machines, clock, began_at, start)
        engine.begin(Configuration(dict(parallelism), nodes * kind.executors, nodes))
        yield engine
    finally:
        for link in links[-1:]:
            link.stop()
        for name in machines.names():
            machines.remove(name)


def plan(engine: SparkEngine, nodes: int | None = None, **parallelism: int) -> Plan:
    """A change of the running configuration."""
    now = engine.configuration
    count = now.nodes if nodes is None else nodes
    executors = count * engine.kinds[0].executors
    target = Configuration({**now.parallelism, **parallelism}, executors, count)
    return Plan(1, engine.now(), now, target, "a test wants it", changes=target != now)


def soon(
    look: Callable[[], Observation],
    check: Callable[[Observation], None],
    always: Callable[[Observation], None] = lambda _: None,
    looks: int = 12,
) -> None:
    """Look again while a check fails: a busy machine blurs a window, as does a JVM that still compiles."""
    for left in reversed(range(looks)):
        seen = look()
        always(seen)
        try:
            check(seen)
            return
        except AssertionError:
            if not left:
                raise


def observe_batches(engine: SparkEngine, batches: int, limit: float = 120.0) -> Observation:
    """Close the window and observe the next one once it holds so many batches; events of both are told."""
    told = engine.observe().events
    ended, until = 0, time.monotonic() + limit
    while ended < batches:
        assert time.monotonic() < until, f"{ended} of {batches} batches within {limit} s"
        time.sleep(0.2)
        engine.poll()
        ended = sum(not batch.idle for query in engine.monitor.queries.values() for batch in query.batches)
    seen = engine.observe()
    return replace(seen, events=(*told, *seen.events))
