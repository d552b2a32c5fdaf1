"""From Kafka to Kafka in both modes: exact rows, and measures that come from the topic's offsets."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rheostat.analyze.evaluation import evaluate
from rheostat.analyze.execution import Staged
from rheostat.engines.spark.engine import SparkEngine
from rheostat.model.configuration import NodeKind
from rheostat.model.decision import Status
from rheostat.model.observation import ARRIVAL_PARTS, Observation
from rheostat.services import kafka_broker
from rheostat.services.kafka_producer import Rows, Schedule, Sender
from rheostat.services.local_cluster import LocalCluster
from rheostat.workloads import parse_curve
from tests.spark.controllers import eventually
from tests.spark.support import application, executors_on, names, observe_span, plan
from tests.spark.topic_reader import TopicReader

KIND = NodeKind(cores=1.0, slots=6, memory_mb=1024.0)
RATE = 200


def send(broker: kafka_broker.Broker, topic: str, seconds: float) -> int:
    """Send rows and wait until the broker has them; returns how many."""
    curve = parse_curve(f"constant:rate={RATE}:duration={seconds:g}s")
    return Sender(broker.servers, topic, Schedule(curve), Rows(keys=50)).run().rows


def wait_for(engine: SparkEngine, reader: TopicReader, count: int) -> None:
    until = time.monotonic() + 180
    while sum(reader.rows.values()) < count:
        assert time.monotonic() < until, f"{sum(reader.rows.values())} of {count} rows"
        time.sleep(0.2)
        engine.poll()


def silent_window(engine: SparkEngine) -> Observation | None:
    """A window in which no row came and a trigger passed, if the next is one and none runs just now."""
    time.sleep(3)
    observed = engine.observe()
    measured = observed.application.backlog is not None and not observed.application.stale
    return observed if observed.total_load == 0 and measured else None


def check_arrivals(observed: Observation) -> None:
    """Check the line of a constant load, whatever batches it came in."""
    source = observed.operators["in"]
    part = RATE * observed.seconds / ARRIVAL_PARTS
    assert source.arrivals == pytest.approx([part] * ARRIVAL_PARTS, rel=0.4)  # a busy machine sends in gusts
    assert sum(source.arrivals) == pytest.approx(RATE * observed.seconds, rel=0.05)
    assert source.waiting is not None and source.waiting <= 2 * RATE
    assert source.busy_seconds is not None
    assert source.busy_seconds < 0.3 * source.parallelism * observed.seconds  # a reader that waits is idle
    assert source.received == pytest.approx(source.processed, abs=RATE)
    assert (observed.operators["parse"].arrivals, observed.operators["parse"].waiting) == ((), None)


def check_queue(engine: SparkEngine, cluster: LocalCluster, broker: kafka_broker.Broker, topic: str) -> int:
    """Check that rows wait which come while a batch cannot end, and no others; return how many came."""
    [worker] = [worker for worker in cluster.workers() if worker.name in names(engine)]
    [executor] = executors_on(worker)
    began = engine.now()
    engine.observe()
    executor.suspend()
    try:
        came = send(broker, topic, 6)
        sent_at, [query] = engine.now(), engine.monitor.queries.values()

        def counted() -> bool:
            """Whether the driver has looked at the topic since."""
            engine.poll()
            return query.ledger.arrivals[-1][0] > sent_at

        eventually(counted, "all rows are counted")
        observed = engine.observe().operators["in"]
    finally:
        executor.resume()

    def done() -> list[float]:
        engine.poll()
        batches = [batch for batch in engine.monitor.recent if batch.started > began and not batch.idle]
        return [batch.input_rows for batch in batches]

    [taken, *_] = eventually(done, "the batch that was held up")
    assert observed.waiting == pytest.approx(came - taken, abs=RATE / 2)
    assert observed.received is not None and observed.processed is not None
    assert observed.received > observed.processed
    return came


@pytest.mark.parametrize("mode", ["microbatch", "realtime"])
def test_every_row_goes_from_topic_to_topic_once_while_it_is_scaled(
    mode: str, cluster: LocalCluster, broker: kafka_broker.Broker, tmp_path: Path
) -> None:
    topics = f"in-{mode}", f"out-{mode}"
    for topic in topics:
        kafka_broker.create_topic(broker.servers, topic, 2)
    start = {"parse": 1, "work": 1}
    with (
        TopicReader(broker.servers, topics[1]) as reader,
        application(
            cluster, tmp_path, "kafka_chain", broker.servers, *topics, "100",
            parallelism=start, mode=mode, kind=KIND, kafka=broker.servers,
        ) as engine,
    ):  # fmt: skip
        assert engine.configuration.parallelism["in"] == 2  # as many as the topic has partitions
        sends = [send(broker, topics[0], 1)]
        wait_for(engine, reader, sends[0])
        runs = engine.monitor.run_id
        with ThreadPoolExecutor() as pool:
            feed = pool.submit(send, broker, topics[0], 20)
            assert engine.apply(plan(engine, parse=2)).status is Status.APPLIED
            wait_for(engine, reader, sends[0] + RATE)
            check_arrivals(observe_span(engine, 6.0))
            sends.append(feed.result())
        wait_for(engine, reader, sum(sends))
        assert engine.monitor.run_id == runs
        observed = eventually(lambda: silent_window(engine), "a window in which nothing came")
        assert (observed.application.lag_seconds, observed.application.backlog) == (0.0, 0.0)
        assert evaluate(engine.topology, observed, Staged(), KIND).missing == ()  # so a policy may shrink it
        assert observed.operators["in"].waiting == 0.0
        if mode == "microbatch":
            sends.append(check_queue(engine, cluster, broker, topics[0]))
            wait_for(engine, reader, sum(sends))
    assert reader.rows == Counter(number for count in sends for number in range(count))
    assert None not in [batch.backlog for batch in engine.monitor.recent]
    assert all(seconds >= 0 for _, seconds in reader.seconds)
