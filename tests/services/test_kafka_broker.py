"""The broker and its topics, on real ones."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Producer

from rheostat.model.errors import RheostatError, UserError
from rheostat.services import cleanup_process, kafka_broker

HOLDER = """
import sys, time
from pathlib import Path
from rheostat.services import kafka_broker
with kafka_broker.running(Path(sys.argv[1])) as broker:
    print(broker.pid, flush=True)
    time.sleep(600)
"""


def write(servers: str, topic: str, partition: int, rows: int) -> None:
    producer = Producer({"bootstrap.servers": servers})
    for number in range(rows):
        producer.produce(topic, str(number), partition=partition)
    assert producer.flush(30) == 0


def test_the_offsets_show_how_far_each_partition_is_written(broker: kafka_broker.Broker) -> None:
    kafka_broker.create_topic(broker.servers, "written", 3)
    assert kafka_broker.ends(broker.servers, "written") == {0: 0, 1: 0, 2: 0}
    write(broker.servers, "written", 1, 7)
    write(broker.servers, "written", 2, 2)
    assert kafka_broker.ends(broker.servers, "written") == {0: 0, 1: 7, 2: 2}
    assert kafka_broker.starts(broker.servers, "written") == {0: 0, 1: 0, 2: 0}


def test_a_topic_is_created_once_and_keeps_its_partitions(broker: kafka_broker.Broker) -> None:
    kafka_broker.create_topic(broker.servers, "once", 2)
    kafka_broker.create_topic(broker.servers, "once", 2)
    with pytest.raises(UserError, match="topic 'once' has 2 partitions, not 3"):
        kafka_broker.create_topic(broker.servers, "once", 3)
    assert kafka_broker.topics(broker.servers)["once"] == 2


def test_deleted_topics_are_gone_and_can_be_created_again(broker: kafka_broker.Broker) -> None:
    kafka_broker.create_topic(broker.servers, "anew", 1)
    write(broker.servers, "anew", 0, 5)
    kafka_broker.delete_topics(broker.servers, ["anew", "never-was"])
    assert "anew" not in kafka_broker.topics(broker.servers)
    kafka_broker.create_topic(broker.servers, "anew", 4)
    assert kafka_broker.ends(broker.servers, "anew") == dict.fromkeys(range(4), 0)


def test_a_misspelt_topic_is_answered_with_the_nearest_name(broker: kafka_broker.Broker) -> None:
    kafka_broker.create_topic(broker.servers, "clicks", 1)
    with pytest.raises(UserError, match="no topic 'clikcs'; did you mean 'clicks'"):
        kafka_broker.ends(broker.servers, "clikcs")


@pytest.mark.parametrize("name", ["", "white space", "sla/sh", "x" * 300])
def test_a_name_that_kafka_refuses_is_a_user_error(broker: kafka_broker.Broker, name: str) -> None:
    with pytest.raises(UserError, match="topic '"):
        kafka_broker.create_topic(broker.servers, name, 1)


def test_it_listens_on_loopback_only(broker: kafka_broker.Broker) -> None:
    listening = [
        place.laddr.ip
        for place in psutil.Process(broker.pid).net_connections("tcp")
        if place.status == psutil.CONN_LISTEN
    ]
    assert len(listening) == 2
    assert {ip.removeprefix("::ffff:") for ip in listening} == {"127.0.0.1"}


@pytest.mark.jvm
def test_its_topics_and_its_port_outlive_a_stop_and_a_kill(tmp_path: Path) -> None:
    tmp_path /= "a, b"
    with kafka_broker.running(tmp_path) as first:
        assert kafka_broker.attach(tmp_path) == first
        with pytest.raises(UserError, match=r"a broker already runs in "):
            kafka_broker.start(tmp_path)
        kafka_broker.create_topic(first.servers, "kept", 1)
        write(first.servers, "kept", 0, 100)
        os.kill(first.pid, signal.SIGKILL)
        first.stop()
        assert not first.alive
        assert kafka_broker.attach(tmp_path) is None
    with kafka_broker.running(tmp_path) as second:
        assert second.servers == first.servers
        assert kafka_broker.ends(second.servers, "kept") == {0: 100}
        second.stop()
        assert kafka_broker.attach(tmp_path) is None


@pytest.mark.jvm
def test_it_does_not_outlive_a_killed_parent(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        pid = int(holder.stdout.readline())
        assert kafka_broker.attach(tmp_path) is not None
        holder.kill()
        until = time.monotonic() + 60
        while cleanup_process.members(pid):
            assert time.monotonic() < until, "the broker is still there"
            time.sleep(0.05)


@pytest.mark.jvm
def test_a_broker_that_cannot_start_says_why_and_leaves_no_process(tmp_path: Path) -> None:
    with pytest.raises(RheostatError, match=r"failed to format .*process\.roles"):
        kafka_broker.start(tmp_path, settings={"process.roles": "nonsense"})
    assert kafka_broker.attach(tmp_path) is None


def test_a_taken_port_is_refused_before_anything_is_made(broker: kafka_broker.Broker, tmp_path: Path) -> None:
    port = int(broker.servers.rpartition(":")[2])
    with pytest.raises(UserError, match=f"port {port} of 127.0.0.1 is in use"):
        kafka_broker.start(tmp_path / "other", port)
    assert not (tmp_path / "other").exists()


def test_without_a_broker_the_error_says_how_to_start_one() -> None:
    servers = f"127.0.0.1:{kafka_broker.free_port()}"
    assert not kafka_broker.answers(servers)
    with pytest.raises(UserError, match="'nonsense' is not a valid broker address"):
        kafka_broker.answers("nonsense")
