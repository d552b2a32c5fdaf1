"""Applications that fan out and in: several queries, linked by Kafka topics, scaled as one."""

import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from rheostat.engines.spark.engine import SparkEngine
from rheostat.model.configuration import NodeKind
from rheostat.model.decision import Status
from rheostat.model.observation import ARRIVAL_PARTS
from rheostat.services import kafka_broker
from rheostat.services.local_cluster import LocalCluster
from tests.spark.controllers import eventually
from tests.spark.support import application, plan

ROWS, RATE = 600, 60
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SASL = {
    "spark.rheostat.kafka.security.protocol": "SASL_PLAINTEXT",
    "spark.rheostat.kafka.sasl.mechanism": "PLAIN",
    "spark.rheostat.kafka.sasl.jaas.config": f'{LOGIN} username="rheostat" password="hush";',
}
KIND = NodeKind(cores=1.5, slots=3, memory_mb=1024.0)


def kept(folder: Path) -> Counter[tuple[int, str]]:
    """Every row that the sinks hold, and how often."""
    rows: Counter[tuple[int, str]] = Counter()
    for path in folder.glob("*/*.json"):
        rows.update((value, by) for value, by in json.loads(path.read_text()))
    return rows


def wait_for(engine: SparkEngine, folder: Path, count: int, limit: float = 240.0) -> None:
    until = time.monotonic() + limit
    while sum(kept(folder).values()) < count:
        assert time.monotonic() < until, f"{sum(kept(folder).values())} of {count} rows within {limit} s"
        time.sleep(0.5)
        engine.poll()


def backlogs(engine: SparkEngine, query: str) -> list[float | None]:
    """Of a query's batches: one is told later than its rows are there."""
    engine.poll()
    return [batch.backlog for batch in engine.monitor.recent if batch.query == query]


def tells_its_queue(engine: SparkEngine, name: str) -> bool:
    measured = engine.observe().operators[name]
    return len(measured.arrivals) == ARRIVAL_PARTS and measured.waiting is not None


def all_told(engine: SparkEngine, names: tuple[str, ...]) -> bool:
    engine.poll()
    return sum(engine.monitor.rows[name] for name in names) >= ROWS


def by(folder: Path, name: str) -> set[int]:
    """The rows that an operator let through."""
    return {value for value, who in kept(folder) if who == name}


def died(output: list[str]) -> bool:
    return any("bad died" in text and "poison" in text for text in output)


def expected(shape: str) -> Counter[tuple[int, str]]:
    names = {"diamond": ("left", "right"), "star": ("a", "b")}[shape]
    return Counter({(value, name): 1 for value in range(ROWS) for name in names})


def graph(
    cluster: LocalCluster,
    broker: kafka_broker.Broker,
    folder: Path,
    shape: str,
    settings: Mapping[str, str] = {},
) -> AbstractContextManager[SparkEngine]:
    arguments = (shape, str(RATE), str(ROWS), str(folder / "results"))
    return application(
        cluster,
        folder,
        "graph",
        *arguments,
        parallelism={},
        kind=KIND,
        kafka=broker.servers,
        settings=settings,
    )


@pytest.fixture
def guarded_broker(tmp_path: Path) -> Iterator[kafka_broker.Broker]:
    """One that asks Spark for a password; its plain port serves only to see whether it is up."""
    plain, controller, guarded = kafka_broker.free_port(), kafka_broker.free_port(), kafka_broker.free_port()
    places = {"PLAINTEXT": plain, "SASL_PLAINTEXT": guarded}
    advertised = ",".join(f"{name}://127.0.0.1:{port}" for name, port in places.items())
    settings = {
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": f"{advertised},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": advertised,
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,"
        "SASL_PLAINTEXT:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{LOGIN} user_rheostat="hush";',
    }
    with kafka_broker.running(tmp_path / "guarded", plain, settings) as broker:
        yield replace(broker, servers=f"127.0.0.1:{guarded}")


@pytest.mark.parametrize("shape", ["diamond", pytest.param("star", marks=pytest.mark.long)])
def test_every_row_takes_every_path_once_while_it_is_rebalanced_stopped_and_resumed(
    shape: str, cluster: LocalCluster, broker: kafka_broker.Broker, tmp_path: Path
) -> None:
    results = tmp_path / "results"
    with graph(cluster, broker, tmp_path, shape) as engine:
        wait_for(engine, results, ROWS // 4)
        runs, last = engine.monitor.run_id, engine.topology.sinks[0]
        outcome = engine.apply(plan(engine, **{last: 2}))
        assert (outcome.status, engine.monitor.run_id) == (Status.APPLIED, runs)
        assert None not in eventually(lambda: backlogs(engine, last), f"a batch of {last}")
        eventually(lambda: tells_its_queue(engine, last), f"what arrived at {last}, and what waits")
    with graph(cluster, broker, tmp_path, shape) as engine:
        wait_for(engine, results, 2 * ROWS)
    assert kept(results) == expected(shape)


def test_an_operator_that_fails_does_not_stop_the_others_also_where_kafka_asks_for_a_password(
    cluster: LocalCluster, guarded_broker: kafka_broker.Broker, tmp_path: Path
) -> None:
    events: list[str] = []
    with graph(cluster, guarded_broker, tmp_path, "broken", SASL) as engine:
        until = time.monotonic() + 240
        while (good := by(tmp_path / "results", "good")) != set(range(ROWS)) or not died(events):
            assert time.monotonic() < until, f"{len(good)} rows of the good one, and {events}"
            time.sleep(0.5)
            events += [event.text for event in engine.observe().events]
    assert 100 not in by(tmp_path / "results", "bad")


@pytest.mark.long
def test_topology_10_hands_every_row_on_to_one_child(
    cluster: LocalCluster, broker: kafka_broker.Broker, tmp_path: Path
) -> None:
    results = tmp_path / "results"
    with graph(cluster, broker, tmp_path, "topology10") as engine:
        wait_for(engine, results, ROWS)
        eventually(lambda: all_told(engine, ("2", "3", "4")), "word of the last batches")
        rows = dict(engine.monitor.rows)
    result = kept(results)
    assert Counter(value for value, _ in result.elements()) == Counter(range(ROWS))
    assert sum(rows[name] for name in ("2", "3", "4")) == ROWS
    assert rows["1 to 2"] == rows["2:in"] == rows["2"]
    assert {by for _, by in result} == {"5", "6", "7", "8", "9", "10"}
