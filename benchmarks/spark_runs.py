"""Starts an application as `rheostat run` does, for the benchmarks on real Spark."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rheostat.engines.spark.engine import SparkEngine
from rheostat.model.configuration import Bounds, Configuration, NodeKind
from rheostat.model.decision import Plan
from rheostat.policies.registry import build
from rheostat.run.composition import start_run
from rheostat.run.order import Order

APPS = Path(__file__).parent / "apps"


@contextmanager
def running(script: str, *arguments: str, kind: NodeKind, nodes: int = 1) -> Iterator[SparkEngine]:
    with tempfile.TemporaryDirectory(prefix="rheostat-bench-") as folder:
        order = Order(
            name=script,
            script=APPS / f"{script}.py",
            policy=build("static"),
            policy_text="static",
            folder=Path(folder) / "run",
            arguments=arguments,
            kinds=(kind,),
            bounds=Bounds(nodes, nodes),
        )
        with start_run(order) as run:
            yield run.engine


def plan(engine: SparkEngine, **parallelism: int) -> Plan:
    now = engine.configuration
    target = Configuration({**now.parallelism, **parallelism}, now.executors, now.nodes)
    return Plan(1, engine.now(), now, target, "the benchmark wants it")


def wait_for_batches(engine: SparkEngine, count: int) -> None:
    """Wait for this many batches."""
    engine.poll()
    first = engine.monitor.recent[-1].number if engine.monitor.recent else -1
    until = time.monotonic() + 300
    while not engine.monitor.recent or engine.monitor.recent[-1].number < first + count:
        if time.monotonic() > until:
            raise TimeoutError(f"{count} batches took more than 300 s")
        time.sleep(0.2)
        engine.poll()
