"""A broker's topics: their partitions and how far each is written. Needs no consumer group."""

import socket
import time
from collections.abc import Iterable
from concurrent.futures import Future
from functools import lru_cache
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from rheostat.model.errors import RheostatError, UserError, nearest

ANSWER_SECONDS = 15.0
CHECK_SECONDS = 5.0  # shorter, because a user is waiting
# The client's own log would go to the terminal; what matters comes back as an exception.
QUIET: dict[str, Any] = {"log_level": 0, "reconnect.backoff.max.ms": 1000}
STARTING = {
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.FENCED_LEADER_EPOCH,
}


def answers(servers: str, seconds: float = ANSWER_SECONDS) -> bool:
    """Return whether a broker answers."""
    if not any(_listens(server, seconds) for server in servers.split(",")):
        return False  # at once; Kafka's client would retry until the time is up
    try:
        return bool(_admin(servers).list_topics(timeout=seconds).brokers)
    except KafkaException:
        return False


def must_answer(servers: str) -> None:
    """Raise UserError unless a Kafka broker answers; anything else that listens there does not count."""
    if not answers(servers, CHECK_SECONDS):
        raise UserError(f"no Kafka broker answers at {servers}; start one with `rheostat kafka up`")


def topics(servers: str) -> dict[str, int]:
    """Return the partition count of each topic, without Kafka's own topics."""
    metadata = _metadata(servers).topics
    return {name: len(metadata[name].partitions) for name in sorted(metadata) if not name.startswith("__")}


def create_topic(servers: str, name: str, partitions: int) -> None:
    """Create a topic, unless it exists with this partition count, and wait until it can be written."""
    admin = _admin(servers)
    try:
        created = admin.create_topics([NewTopic(name, partitions, 1)])[name]
    except ValueError as error:
        raise UserError(f"topic {name!r}: {error}") from None
    failure = _failure(created)
    if failure is not None and failure.code() != KafkaError.TOPIC_ALREADY_EXISTS:
        raise UserError(f"topic {name!r} cannot be created on {servers}: {failure.str()}")
    until = time.monotonic() + ANSWER_SECONDS
    while name not in (existing := topics(servers)) and time.monotonic() < until:
        time.sleep(0.02)
    if existing.get(name, partitions) != partitions:
        raise UserError(
            f"topic {name!r} has {existing[name]} partitions, not {partitions}; "
            "give that number, choose another topic, or delete this one"
        )
    ends(servers, name)


def delete_topics(servers: str, names: Iterable[str]) -> None:
    """Delete those of these topics that exist, and wait until they are gone."""
    unwanted = set(names)
    present = unwanted & set(_metadata(servers).topics)
    if not present:
        return
    admin = _admin(servers)
    for name, deleted in admin.delete_topics(sorted(present)).items():
        failure = _failure(deleted)
        if failure is not None and failure.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise RheostatError(f"topic {name!r} cannot be deleted on {servers}: {failure.str()}")
    until = time.monotonic() + ANSWER_SECONDS
    while unwanted & set(_metadata(servers).topics):
        if time.monotonic() > until:
            raise RheostatError(f"topics still exist after {ANSWER_SECONDS:g} s; see the broker's log")
        time.sleep(0.02)


def ends(servers: str, topic: str) -> dict[int, int]:
    """Return the offset of the next row per partition: how much was ever written."""
    return _offsets(servers, topic, OffsetSpec.latest())


def starts(servers: str, topic: str) -> dict[int, int]:
    """Return the offset of the oldest row per partition that is still kept."""
    return _offsets(servers, topic, OffsetSpec.earliest())


def row_count(servers: str, topic: str) -> int:
    """Return how many rows a topic holds."""
    return sum(ends(servers, topic).values()) - sum(starts(servers, topic).values())


def _offsets(servers: str, topic: str, which: OffsetSpec) -> dict[int, int]:
    existing = topics(servers)
    if topic not in existing:
        raise UserError(f"{servers} has no topic {topic!r}{nearest(topic, existing)}")
    places = {TopicPartition(topic, number): which for number in range(existing[topic])}
    admin, until = _admin(servers), time.monotonic() + ANSWER_SECONDS
    while True:
        offsets = admin.list_offsets(places, request_timeout=ANSWER_SECONDS)
        try:
            return {place.partition: answer.result().offset for place, answer in offsets.items()}
        except KafkaException as error:  # a new topic is listed a moment before its leader serves it
            if error.args[0].code() not in STARTING or time.monotonic() > until:
                reason = error.args[0].str()
                raise RheostatError(f"{servers} did not return the offsets of {topic!r}: {reason}") from None
        time.sleep(0.02)


def _metadata(servers: str) -> Any:
    try:
        return _admin(servers).list_topics(timeout=ANSWER_SECONDS)
    except KafkaException as error:
        raise no_answer(servers, error) from None


def no_answer(servers: str, error: KafkaException) -> RheostatError:
    """Return the error for a broker that does not answer."""
    reason = error.args[0].str()
    return RheostatError(
        f"no Kafka broker answers at {servers} ({reason}); start one with `rheostat kafka up`"
    )


def _listens(server: str, seconds: float) -> bool:
    host, _, port = server.strip().rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise UserError(f"{server!r} is not a valid broker address; write HOST:PORT")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=seconds).close()
    except (OSError, UnicodeError):
        return False
    return True


def _failure(future: "Future[Any]") -> Any:
    try:
        future.result()
    except KafkaException as error:
        return error.args[0]
    return None


@lru_cache(maxsize=8)
def _admin(servers: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": servers, **QUIET})
