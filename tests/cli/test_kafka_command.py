"""`rheostat kafka` as a user runs it: the broker outlives the command that starts it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from rheostat.services import cleanup_process, kafka_broker
from tests.cli.commands import call, process, refused


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    left = kafka_broker.attach(tmp_path / ".rheostat/kafka")
    if left is not None:
        left.stop()


@pytest.mark.jvm
def test_up_status_topics_and_down(folder: Path) -> None:
    port = kafka_broker.free_port()
    servers = f"127.0.0.1:{port}"
    up = process(f"rheostat kafka up --port {port}", folder)
    assert up.returncode == 0, up.stderr
    assert up.stdout.splitlines()[0] == servers
    assert "rheostat kafka down stops it" in up.stdout
    again = process(f"rheostat kafka up --port {port}", folder)
    assert again.stdout.splitlines()[:2] == [
        servers,
        "already running; its log is .rheostat/kafka/broker.log",
    ]

    output = json.loads(process("rheostat kafka status --json", folder).stdout)
    assert (output["running"], output["servers"]) == (True, servers)
    assert cleanup_process.members(output["pid"]) == [output["pid"]]
    kafka_broker.create_topic(servers, "events", 3)
    listed = process(f"rheostat kafka topics --servers {servers} --json", folder)
    assert json.loads(listed.stdout) == [{"topic": "events", "partitions": 3, "rows": 0}]

    moved = process("rheostat kafka up --port 19999", folder)
    assert moved.returncode == 2
    assert f"a broker already runs in .rheostat/kafka at {servers}" in moved.stderr
    other = process(f"rheostat kafka up --port {port} --folder other", folder)
    assert other.returncode == 2
    assert f"port {port} of 127.0.0.1 is in use" in other.stderr
    assert not (folder / "other").exists()

    mine = folder / ".rheostat/kafka/mine.txt"
    mine.write_text("kept")
    down = process("rheostat kafka down --delete", folder)
    assert down.stdout.splitlines() == [f"{servers} stopped", "deleted its data in .rheostat/kafka"]
    assert [path.name for path in mine.parent.iterdir()] == ["mine.txt"]
    assert not kafka_broker.answers(servers)
    assert cleanup_process.members(output["pid"]) == []


def test_without_a_broker_down_is_fine_and_status_says_how_to_start(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert call("kafka", "down", "--folder", str(tmp_path / "none")) == 0
    assert call("kafka", "status", "--folder", str(tmp_path / "none")) == 1
    message = capsys.readouterr().out
    assert (
        f"no broker runs in {tmp_path}/none; `rheostat kafka up --folder {tmp_path}/none` starts" in message
    )


def test_listing_topics_without_a_broker_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    servers = f"127.0.0.1:{kafka_broker.free_port()}"
    message = refused(capsys, "kafka", "topics", "--servers", servers)
    assert f"no Kafka broker answers at {servers}; start one with `rheostat kafka up`" in message
    assert "write HOST:PORT" in refused(capsys, "kafka", "topics", "--servers", "localhost")


@pytest.mark.jvm
def test_fetch_prints_where_the_archives_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("kafka", "fetch") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("kafka-broker-4.1.0: 46 archives in ")
    assert lines[1].startswith("spark-kafka-4.2.0: 4 archives in ")
