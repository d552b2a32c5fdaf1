"""Sends rows to a Kafka topic at a curve's rate. The seed decides every row, except for its time."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from numpy.typing import NDArray

from rheostat.model.errors import UserError
from rheostat.services.kafka_topics import (
    ANSWER_SECONDS,
    QUIET,
    create_topic,
    must_answer,
    no_answer,
    topics,
)
from rheostat.workloads import Curve, sample

STEP_SECONDS = 1.0
TICK_SECONDS = 0.005
CHUNK_ROWS = 5_000
OVERTIME_SECONDS = 1.0  # to send rows that were due before the end
WARM_UP_SECONDS = 0.6  # the client sends nothing before it has an id, which it asks for after 0.5 s
FLUSH_SECONDS = 30.0
MIN_SIZE = 64  # bytes of a padded row: room for all its numbers
MAX_TIME_SCALE = 100_000
DEFAULT_PARTITIONS = 4
SETTINGS = {
    "enable.idempotence": True,  # a row that is sent again because the broker failed is stored once
    "partitioner": "murmur2_random",  # keys go to the same partitions as with Spark's and Java's clients
    "linger.ms": 5,
    "batch.num.messages": 10_000,
    "queue.buffering.max.messages": 500_000,
    "queue.buffering.max.kbytes": 256 << 10,
    "delivery.report.only.error": True,
}


class Schedule:
    """How many rows of a curve are due at any time; `time_scale` plays it that many times faster."""

    def __init__(self, curve: Curve, seed: int = 0, time_scale: float = 1.0) -> None:
        self.step_seconds = STEP_SECONDS / time_scale
        self.seconds = curve.duration_seconds / time_scale
        rows = np.cumsum(sample(curve, STEP_SECONDS, seed)) * self.step_seconds
        self._totals = np.concatenate([[0], np.floor(rows + 1e-9)]).astype(np.int64)

    def due(self, seconds: float) -> int:
        """Return the rows due up to a time."""
        step, part = divmod(min(max(seconds, 0.0), self.seconds) / self.step_seconds, 1.0)
        first, after = (int(self._totals[min(int(step) + more, self._totals.size - 1)]) for more in (0, 1))
        return first + int((after - first) * part)


@dataclass(frozen=True, slots=True)
class Rows:
    """Makes rows: each has one of `keys` keys, and as JSON its number, its key and when it was sent."""

    keys: int = 1000
    seed: int = 0
    size: int | None = None  # bytes of a value

    def made(self, first: int, count: int, sent_ms: int) -> Iterator[tuple[bytes, bytes]]:
        """Yield keys and values of rows `first`, `first + 1`, ...

        >>> list(Rows(keys=10).made(7, 2, 1700000000000))
        [(b'4', b'{"n":7,"key":4,"sent":1700000000000}'), (b'0', b'{"n":8,"key":0,"sent":1700000000000}')]
        """
        tail = b',"sent":%d' % sent_ms
        padding = b"x" * (self.size or 0)
        for number, key in enumerate(self.keys_of(first, count).tolist(), first):
            name = b"%d" % key
            value = b'{"n":%d,"key":%b%b' % (number, name, tail)
            if self.size is None:
                yield name, value + b"}"
            else:
                yield name, b'%b,"pad":"%b"}' % (value, padding[len(value) + 10 :])

    def keys_of(self, first: int, count: int) -> NDArray[np.uint64]:
        """Choose each row's key by its number alone, whatever chunks the rows are made in."""
        mixed = np.arange(first, first + count, dtype=np.uint64)
        mixed += np.uint64(self.seed * 0x9E3779B97F4A7C15 % 2**64)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):  # as splitmix64 does
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
        return (mixed ^ (mixed >> np.uint64(31))) % np.uint64(self.keys)


@dataclass(frozen=True, slots=True)
class Sent:
    """What was really sent, compared with what the curve wanted."""

    rows: int  # stored by the broker
    wanted: int
    failed: int  # given to the client, but not stored by the broker
    seconds: float
    behind_rows: int  # late, at the worst moment
    behind_at_seconds: float
    reason: str = ""  # of the last failure

    @property
    def rows_per_second(self) -> float:
        """The mean rate."""
        return self.rows / self.seconds if self.seconds > 0 else 0.0


class Sender:
    """Sends the rows of a schedule in order, when they are due."""

    def __init__(self, servers: str, topic: str, schedule: Schedule, rows: Rows) -> None:
        self._topic, self._schedule, self._rows = topic, schedule, rows
        self._producer = Producer({"bootstrap.servers": servers, **QUIET, **SETTINGS})
        try:
            self._producer.list_topics(timeout=ANSWER_SECONDS)  # connects before the clock starts
        except KafkaException as error:
            raise no_answer(servers, error) from None
        time.sleep(WARM_UP_SECONDS)
        self._given = self._failed = 0
        self._reason = ""
        self._worst = (0, 0.0)

    def run(
        self,
        seconds: float | None = None,
        stopped: Callable[[], bool] = lambda: False,
        progress: Callable[[float], None] = lambda _: None,
    ) -> Sent:
        """Send until the curve ends, the time is up or `stopped` says so."""
        end = min(self._schedule.seconds, seconds if seconds is not None else float("inf"))
        began = time.monotonic()
        while True:
            now = time.monotonic() - began
            due = self._schedule.due(min(now, end))
            self._give(min(due, self._given + CHUNK_ROWS))
            behind = due - self._delivered()
            if behind > self._worst[0]:
                self._worst = (behind, now)
            late = self._given < due
            if stopped() or (now >= end and (not late or now > end + OVERTIME_SECONDS)):
                break
            progress(min(now / end, 1.0))
            if not late:
                time.sleep(TICK_SECONDS)
        self._flush()
        took = max(now, time.monotonic() - began)
        return Sent(self._delivered(), due, self._given - self._delivered(), took, *self._worst, self._reason)

    def _give(self, upto: int) -> None:
        """Give the client as many rows as it accepts; the others stay due."""
        sent_ms = time.time_ns() // 1_000_000
        produce, topic, failed = self._producer.produce, self._topic, self._note_failure
        try:
            for key, value in self._rows.made(self._given, upto - self._given, sent_ms):
                produce(topic, value, key, timestamp=sent_ms, on_delivery=failed)
                self._given += 1
        except BufferError:
            time.sleep(TICK_SECONDS)
        self._producer.poll(0)

    def _note_failure(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._failed += 1
            self._reason = error.str()

    def _delivered(self) -> int:
        return max(0, self._given - self._failed - len(self._producer))

    def _flush(self) -> None:
        """Wait for the broker to confirm every row; a row that it does not confirm in time has failed."""
        if self._producer.flush(FLUSH_SECONDS):
            self._producer.purge()
            self._producer.flush(1.0)


@dataclass(frozen=True, slots=True)
class Shipment:
    """A curve to send, how fast, and what its rows look like."""

    curve: Curve
    seed: int
    time_scale: float
    keys: int
    size: int | None
    seconds: float | None  # None: until the curve ends

    def __post_init__(self) -> None:
        if self.size is not None and self.size < MIN_SIZE:
            raise UserError(f"--size must be at least {MIN_SIZE}, the bytes of the numbers in a row")
        if not 0 < self.time_scale <= MAX_TIME_SCALE:
            raise UserError(f"--time-scale must be greater than 0 and at most {MAX_TIME_SCALE:,}")
        if self.seconds is not None and not 0 < self.seconds < float("inf"):
            raise UserError("--seconds must be greater than 0")


def send_curve(
    servers: str,
    topic: str,
    partitions: int | None,
    shipment: Shipment,
    stopped: Callable[[], bool],
    progress: Callable[[float], None],
) -> Sent:
    """Send a curve to a topic, which is created if it does not exist."""
    must_answer(servers)
    if partitions is not None or topic not in topics(servers):
        create_topic(servers, topic, partitions or DEFAULT_PARTITIONS)
    schedule = Schedule(shipment.curve, shipment.seed, shipment.time_scale)
    sender = Sender(servers, topic, schedule, Rows(shipment.keys, shipment.seed, shipment.size))
    return sender.run(shipment.seconds, stopped, progress)
