"""Reads a topic from its beginning to its end."""

from confluent_kafka import Consumer, Message, TopicPartition

from rheostat.services import kafka_broker


def read(servers: str, topic: str) -> list[Message]:
    """All its rows."""
    ends = kafka_broker.ends(servers, topic)
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "reading", "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in ends])
        result: list[Message] = []
        while len(result) < sum(ends.values()):
            lot = consumer.consume(10_000, timeout=20)
            assert lot, f"{len(result)} of {sum(ends.values())} rows came"
            result += lot
        return result
    finally:
        consumer.close()
