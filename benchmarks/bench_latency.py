"""Real-Time Mode from Kafka to Kafka: the latency of a row while operators and nodes are scaled.

Latency is from the send timestamp to the moment at which Spark hands the row to its sink's producer.
"""

import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from rheostat.engines.spark.engine import SparkEngine
from rheostat.model.configuration import Bounds, Configuration, NodeKind
from rheostat.model.decision import Plan, Status
from rheostat.policies.registry import build
from rheostat.run.composition import start_run
from rheostat.run.order import Order
from rheostat.services import kafka_broker
from rheostat.services.kafka_producer import Rows, Schedule, Sender
from rheostat.workloads import parse_curve

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.spark.topic_reader import TopicReader

APP = Path(__file__).parents[1] / "tests" / "spark" / "apps" / "kafka_chain.py"
RATE, PHASE_SECONDS, ROUNDS = 500, 20.0, 200
KIND = NodeKind(cores=1.0, slots=5, memory_mb=1024.0)


def change(engine: SparkEngine, nodes: int, **parallelism: int) -> None:
    now = engine.configuration
    target = Configuration({**now.parallelism, **parallelism}, nodes, nodes)
    done = engine.apply(Plan(1, engine.now(), now, target, "the benchmark wants it"))
    if done.status is not Status.APPLIED:
        raise RuntimeError(done.reason)


PHASES: dict[str, Callable[[SparkEngine], None]] = {
    "nothing changes": lambda engine: None,
    "parse 1 -> 2": lambda engine: change(engine, 1, parse=2),
    "a second node, work 1 -> 3": lambda engine: change(engine, 2, work=3),
    "nothing changes, 2 nodes": lambda engine: None,
    "work 3 -> 1, the node leaves": lambda engine: change(engine, 1, parse=1, work=1),
    "nothing changes, 1 node": lambda engine: None,
}


def main() -> int:
    with (
        tempfile.TemporaryDirectory(prefix="rheostat-bench-") as name,
        kafka_broker.running(Path(name) / "kafka") as broker,
    ):
        for topic in ("in", "out"):
            kafka_broker.create_topic(broker.servers, topic, 2)
        order = Order(
            name="latency",
            script=APP,
            policy=build("static"),
            policy_text="static",
            folder=Path(name) / "run",
            arguments=(broker.servers, "in", "out", str(ROUNDS)),
            mode="realtime",
            kinds=(KIND,),
            bounds=Bounds(1, 2),
            kafka=broker.servers,
            trigger_seconds=5.0,
        )
        with TopicReader(broker.servers, "out") as reader, start_run(order) as run:
            marks, sent, runs = measure(run.engine, broker.servers)
            until = time.monotonic() + 60
            while sum(reader.rows.values()) < sent and time.monotonic() < until:
                time.sleep(0.2)
    return judge(marks, reader, sent, runs)


def measure(engine: SparkEngine, servers: str) -> tuple[list[tuple[str, float, float]], int, set[str | None]]:
    """Send rows during all phases; return when each phase started and ended."""
    ending, sent = threading.Event(), []
    curve = parse_curve(f"constant:rate={RATE}:duration=30m")

    def feed() -> None:
        sender = Sender(servers, "in", Schedule(curve), Rows(keys=100))
        sent.append(sender.run(stopped=ending.is_set).rows)

    thread = threading.Thread(target=feed)
    thread.start()
    try:
        settle = time.monotonic() + 2 * PHASE_SECONDS
        while time.monotonic() < settle:
            engine.poll()
            time.sleep(0.5)
        runs, marks = {engine.monitor.run_id}, []
        for words, act in PHASES.items():
            began = time.time()
            act(engine)
            while time.time() < began + PHASE_SECONDS:
                engine.poll()
                time.sleep(0.2)
            runs.add(engine.monitor.run_id)
            marks.append((words, began, time.time()))
            print(f"  {words}: {time.time() - began:.0f} s", flush=True)
    finally:
        ending.set()
        thread.join()
    return marks, sent[0], runs


def judge(
    marks: list[tuple[str, float, float]], reader: TopicReader, sent: int, runs: set[str | None]
) -> int:
    print(f"  {'phase':32} {'rows':>7} {'p50':>9} {'p99':>9} {'worst':>9}")
    for words, began, ended in marks:
        took = sorted(seconds * 1000 for at, seconds in reader.seconds if began <= at < ended)
        if took:
            cuts = statistics.quantiles(took, n=100)
            print(f"  {words:32} {len(took):7,} {cuts[49]:6.0f} ms {cuts[98]:6.0f} ms {took[-1]:6.0f} ms")
    lost, twice = sent - len(reader.rows), sum(count > 1 for count in reader.rows.values())
    good = lost == 0 and twice == 0 and len(runs) == 1
    print(
        f"  {sent:,} rows sent, {lost} lost, {twice} twice, {len(runs) - 1} restarts  "
        f"{'ok' if good else 'FAILED'}"
    )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
