"""Reads what an application wrote to a topic: which rows, and the latency of each."""

import json
import threading
from collections import Counter

from confluent_kafka import TIMESTAMP_CREATE_TIME, Consumer


class TopicReader:
    """Follows a topic in its own thread, from its beginning."""

    def __init__(self, servers: str, topic: str) -> None:
        self.rows: Counter[int] = Counter()
        self.seconds: list[tuple[float, float]] = []  # when a row was sent (unix), how long it took
        self._consumer = Consumer(
            {"bootstrap.servers": servers, "group.id": f"reader-{topic}", "auto.offset.reset": "earliest"}
        )
        self._consumer.subscribe([topic])
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow)

    def __enter__(self) -> "TopicReader":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._consumer.close()

    def _follow(self) -> None:
        while not self._stop.is_set():
            for message in self._consumer.consume(1000, 0.2):
                value = message.value()
                if message.error() or not isinstance(value, bytes):
                    continue
                row = json.loads(value)
                kind, written_ms = message.timestamp()
                assert kind == TIMESTAMP_CREATE_TIME  # when Spark handed it to its producer
                self.rows[row["n"]] += 1
                self.seconds.append((row["sent"] / 1000, (written_ms - row["sent"]) / 1000))
