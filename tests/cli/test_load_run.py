"""`rheostat load run`: a curve becomes rows in a topic, and the report is true."""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from rheostat.services import kafka_broker
from tests.cli.commands import call, refused

COMMAND = [sys.executable, "-c", "from rheostat.cli.main import run; run()", "load", "run"]


def test_the_report_says_what_the_topic_holds(
    broker: kafka_broker.Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--kafka", "reported", "--servers", broker.servers, "--partitions", "3"]
    assert (
        call("load", "run", "constant:rate=3000:duration=60", *options, "--time-scale", "60", "--json") == 0
    )
    output = json.loads(capsys.readouterr().out)
    assert (output["rows"], output["wanted"], output["failed"]) == (3000, 3000, 0)
    ends = kafka_broker.ends(broker.servers, "reported")
    assert len(ends) == 3
    assert sum(ends.values()) == 3000


def test_it_ends_after_the_seconds_and_keeps_a_topic_that_is_there(
    broker: kafka_broker.Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    kafka_broker.create_topic(broker.servers, "there", 2)
    options = ["--kafka", "there", "--servers", broker.servers]
    assert call("load", "run", "constant:rate=400:duration=10m", *options, "--seconds", "1") == 0
    message = capsys.readouterr()
    seconds = re.match(r"there: 400 rows sent in ([\d.]+) s", message.out)
    assert seconds and 1 <= float(seconds[1]) < 60
    assert "the curve wanted 400 rows; at worst" in message.out
    assert sum(kafka_broker.ends(broker.servers, "there").values()) == 400


def test_ctrl_c_ends_it_with_a_report(broker: kafka_broker.Broker, tmp_path: Path) -> None:
    kafka_broker.create_topic(broker.servers, "ended", 1)
    options = ["constant:rate=1000:duration=1h", "--kafka", "ended", "--servers", broker.servers, "--json"]
    with subprocess.Popen(
        [*COMMAND, *options], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as sending:
        until = time.monotonic() + 60
        while kafka_broker.ends(broker.servers, "ended")[0] < 100:
            assert sending.poll() is None
            assert time.monotonic() < until, "nothing was sent"
            time.sleep(0.05)
        sending.send_signal(signal.SIGINT)
        out, err = sending.communicate(timeout=60)
    assert sending.returncode == 0
    assert err == "rheostat: interrupted: stopped after sending all rows that were due\n"
    assert (
        json.loads(out)["rows"] == json.loads(out)["wanted"] == kafka_broker.ends(broker.servers, "ended")[0]
    )


def test_rows_that_do_not_arrive_are_an_error(
    broker: kafka_broker.Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = NewTopic("narrow", 1, 1, config={"max.message.bytes": "200"})
    admin = AdminClient({"bootstrap.servers": broker.servers})
    admin.create_topics([topic])["narrow"].result()
    options = ["--kafka", "narrow", "--servers", broker.servers, "--size", "1000"]
    assert call("load", "run", "constant:rate=50:duration=1", *options) == 1
    message = capsys.readouterr()
    assert "narrow: 0 rows sent" in message.out
    assert message.err.startswith("rheostat: 50 rows did not reach the broker: ")


def test_mistakes_are_refused_before_any_row_is_sent(
    broker: kafka_broker.Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    kafka_broker.create_topic(broker.servers, "two", 2)
    here = ["--servers", broker.servers]
    nowhere = f"127.0.0.1:{kafka_broker.free_port()}"
    for options, message in (
        (["sin", "--kafka", "two", *here], "did you mean 'sine'"),
        (["sine", "--kafka", "two", "--partitions", "5", *here], "topic 'two' has 2 partitions, not 5"),
        (["sine", "--kafka", "a b", *here], "topic 'a b' cannot be created"),
        (["sine", "--kafka", "two", "--servers", nowhere], f"no Kafka broker answers at {nowhere}"),
        (["sine", "--kafka", "two", "--seconds", "0", *here], "--seconds must be greater than 0"),
        (["sine", "--kafka", "two", "--time-scale", "nan", *here], "--time-scale must be greater than 0"),
        (["sine", "--kafka", "two", "--size", "10", *here], "64"),
        (["sine", *here], "--kafka"),
    ):
        assert message in refused(capsys, "load", "run", *options)
    assert kafka_broker.ends(broker.servers, "two") == {0: 0, 1: 0}
