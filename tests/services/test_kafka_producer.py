"""What is sent: the right rows, as many as the curve brings, and a true report of it."""

import itertools
import json

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from rheostat.services import kafka_broker
from rheostat.services.kafka_producer import Rows, Schedule, Sender
from rheostat.workloads import parse_curve, sample
from tests.services.topic_contents import read


def test_rows_do_not_depend_on_the_chunks_they_are_made_in() -> None:
    rows = Rows(keys=50, seed=3)
    whole = list(rows.made(0, 1000, 1))
    lots = [list(rows.made(first, 125, 1)) for first in range(0, 1000, 125)]
    assert list(itertools.chain.from_iterable(lots)) == whole
    assert whole != list(Rows(keys=50, seed=4).made(0, 1000, 1))


def test_keys_are_spread_evenly() -> None:
    counts = [0] * 10
    for key in Rows(keys=10, seed=1).keys_of(0, 100_000).tolist():
        counts[key] += 1
    assert min(counts) > 9_500
    assert max(counts) < 10_500


@pytest.mark.parametrize("size", [64, 100, 1000])
def test_a_padded_row_has_its_size_and_is_json(size: int) -> None:
    for key, value in Rows(keys=10_000_000, size=size).made(10**11, 100, 1_700_000_000_000):
        assert len(value) == size
        assert str(json.loads(value)["key"]) == key.decode()


def test_the_schedule_ends_with_the_rows_of_the_curve() -> None:
    curve = parse_curve("sine:low=0:high=500:period=60:duration=60:noise=poisson")
    schedule = Schedule(curve, seed=5)
    assert schedule.due(60) == int(sample(curve, 1.0, 5).sum() + 1e-9)
    assert schedule.due(-1) == 0
    assert schedule.due(1e9) == schedule.due(60)


def test_a_scaled_schedule_keeps_the_rate_and_shortens_the_time() -> None:
    schedule = Schedule(parse_curve("constant:rate=100:duration=60"), time_scale=30)
    assert schedule.seconds == 2
    assert [schedule.due(seconds) for seconds in (0.5, 1, 2, 3)] == [50, 100, 200, 200]


def test_every_row_arrives_once_with_its_key_and_its_send_time(broker: kafka_broker.Broker) -> None:
    kafka_broker.create_topic(broker.servers, "rows", 4)
    schedule, rows = Schedule(parse_curve("constant:rate=2500:duration=2")), Rows(keys=100, seed=9)
    sent = Sender(broker.servers, "rows", schedule, rows).run()
    assert (sent.rows, sent.wanted, sent.failed) == (5_000, 5_000, 0)
    arrived = read(broker.servers, "rows")
    values = [json.loads(message.value() or b"") for message in arrived]
    assert sorted(value["n"] for value in values) == list(range(5_000))
    keys = rows.keys_of(0, 5_000).tolist()
    partitions: dict[int, int | None] = {}
    for message, value in zip(arrived, values, strict=True):
        assert value["key"] == keys[value["n"]] == int(message.key() or b"")
        assert message.timestamp()[1] == value["sent"]
        assert partitions.setdefault(value["key"], message.partition()) == message.partition()
    assert len(set(partitions.values())) == 4


def test_stopping_early_reports_what_was_sent_until_then(broker: kafka_broker.Broker) -> None:
    kafka_broker.create_topic(broker.servers, "stopped", 1)
    fractions: list[float] = []
    sender = Sender(broker.servers, "stopped", Schedule(parse_curve("constant:rate=1000")), Rows())
    sent = sender.run(stopped=lambda: len(fractions) >= 50, progress=fractions.append)
    assert 0 < sent.rows == sent.wanted == kafka_broker.ends(broker.servers, "stopped")[0]
    assert sent.seconds < 60


def test_rows_that_cannot_be_sent_in_time_are_reported_as_a_shortfall(broker: kafka_broker.Broker) -> None:
    kafka_broker.create_topic(broker.servers, "too-much", 2)
    schedule = Schedule(parse_curve("constant:rate=50000000:duration=1"))
    sent = Sender(broker.servers, "too-much", schedule, Rows()).run()
    assert 0 < sent.rows < sent.wanted == 50_000_000
    assert sent.behind_rows > 10_000_000
    assert sum(kafka_broker.ends(broker.servers, "too-much").values()) == sent.rows


def test_rows_that_the_broker_refuses_are_counted_as_failed(broker: kafka_broker.Broker) -> None:
    topic = NewTopic("small-rows", 1, 1, config={"max.message.bytes": "200"})
    admin = AdminClient({"bootstrap.servers": broker.servers})
    admin.create_topics([topic])["small-rows"].result()
    kafka_broker.create_topic(broker.servers, "small-rows", 1)
    schedule = Schedule(parse_curve("constant:rate=100:duration=1"))
    sent = Sender(broker.servers, "small-rows", schedule, Rows(size=1000)).run()
    assert (sent.rows, sent.failed, sent.wanted) == (0, 100, 100)
    assert "too large" in sent.reason
    assert kafka_broker.ends(broker.servers, "small-rows") == {0: 0}
