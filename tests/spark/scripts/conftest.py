"""What all scripts share: their results under plain Spark, and a cluster of somebody else."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from rheostat.model.configuration import NodeKind
from rheostat.services.kafka_broker import Broker, connector_jars
from rheostat.services.local_cluster import LocalCluster

from .cases import CASES, Case, lines, results, write_input

ROOT = Path(__file__).parents[3]
TOPIC = "lines"


@dataclass(frozen=True)
class Plain:
    """What plain Spark made of each script."""

    broker: Broker
    expected: dict[str, list[str]]

    def arguments(self, case: Case, folder: Path) -> tuple[str, ...]:
        return (str(folder), *((self.broker.servers, TOPIC) if case.script == "kafka_source" else ()))


@pytest.fixture(scope="package")
def plain(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Plain:
    _send(broker)
    made = Plain(broker, {})
    folders = {case.script: write_input(tmp_path_factory.mktemp(case.script)) for case in CASES}
    scripts = [
        (str(case.path), len(case.queries), *made.arguments(case, folders[case.script])) for case in CASES
    ]
    asked = {"jars": ",".join(map(str, connector_jars())), "scripts": scripts}
    command = [sys.executable, "-m", "tests.spark.scripts.plain_spark"]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    made.expected.update({case.script: results(case, folders[case.script]) for case in CASES})
    return made


def _send(broker: Broker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.servers})
    admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(30)
    producer = Producer({"bootstrap.servers": broker.servers})
    for line in lines():
        producer.produce(TOPIC, line)
    assert producer.flush(30) == 0


@pytest.fixture(scope="package")
def foreign(cluster: LocalCluster) -> Iterator[LocalCluster]:
    """A Worker that is not the controller's."""
    name = cluster.add(NodeKind(cores=1.0, slots=2, memory_mb=1024.0)).name
    cluster.wait(name)
    yield cluster
    cluster.remove(name)
