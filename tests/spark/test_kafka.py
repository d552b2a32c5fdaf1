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
from rheostat.model.observation import Observation
from rheostat.services import kafka_broker
from rheostat.services.kafka_producer import Rows, Schedule, Sender
from rheostat.services.local_cluster import LocalCluster
from rheostat.workloads import parse_curve
from tests.spark.controllers import eventually
from tests.spark.support import application, plan
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


@pytest.mark.parametrize("mode", ["microbatch", "realtime"])
def test_every_row_goes_from_topic_to_topic_once_while_it_is_scaled(
    mode: str, cluster: LocalCluster, broker: kafka_broker.Broker, tmp_path: Path
) -> None:
    names = f"in-{mode}", f"out-{mode}"
    for name in names:
        kafka_broker.create_topic(broker.servers, name, 2)
    start = {"parse": 1, "work": 1}
    with (
        TopicReader(broker.servers, names[1]) as reader,
        application(
            cluster, tmp_path, "kafka_chain", broker.servers, *names, "100",
            parallelism=start, mode=mode, kind=KIND, kafka=broker.servers,
        ) as engine,
    ):  # fmt: skip
        assert engine.configuration.parallelism["in"] == 2  # as many as the topic has partitions
        sent = send(broker, names[0], 1)
        wait_for(engine, reader, sent)
        runs = engine.monitor.run_id
        with ThreadPoolExecutor() as pool:
            feed = pool.submit(send, broker, names[0], 8)
            assert engine.apply(plan(engine, parse=2)).status is Status.APPLIED
            more = feed.result()
        wait_for(engine, reader, sent + more)
        assert engine.monitor.run_id == runs
        observed = eventually(lambda: silent_window(engine), "a window in which nothing came")
        assert (observed.application.lag_seconds, observed.application.backlog) == (0.0, 0.0)
        assert evaluate(engine.topology, observed, Staged(), KIND).missing == ()  # so a policy may shrink it
    assert reader.rows == Counter([*range(sent), *range(more)])
    assert None not in [batch.backlog for batch in engine.monitor.recent]
    assert all(seconds >= 0 for _, seconds in reader.seconds)
