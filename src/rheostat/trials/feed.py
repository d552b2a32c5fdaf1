"""A load that goes through a topic of its own, sent by a process of its own."""

import secrets
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rheostat.model.errors import RheostatError
from rheostat.services.cleanup import sessions_ended_on_exit
from rheostat.services.interrupts import uninterrupted


@dataclass
class Feed:
    """Sends a curve to a topic once it is told to."""

    servers: str
    curve: str
    seed: int
    keep: Callable[[int], None]  # told of the sender, ends it when this process is gone
    topic: str = field(default_factory=lambda: f"rheostat-feed-{secrets.token_hex(6)}")
    _process: "subprocess.Popen[bytes] | None" = None

    def begin(self) -> None:
        """Start to send."""
        own = ["load", "run", self.curve, "--kafka", self.topic, "--servers", self.servers]
        with uninterrupted():
            self._process = subprocess.Popen(
                [sys.executable, "-m", "rheostat", *own, "--seed", str(self.seed)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            self.keep(self._process.pid)

    def check(self) -> None:
        """Refuse to go on with a sender that failed."""
        if self._process and self._process.poll():
            raise RheostatError(f"the sender of the load ended with exit code {self._process.returncode}")

    def end(self) -> None:
        """Stop sending."""
        if self._process:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait()


@contextmanager
def feed(servers: str, curve: str, seed: int, partitions: int) -> Iterator[Feed]:
    """Make the topic; on the way out end the sender and delete the topic."""
    from rheostat.services.kafka_topics import (  # noqa: PLC0415 - most trials need no Kafka client
        create_topic,
        delete_topics,
    )

    with sessions_ended_on_exit() as keep:
        made = Feed(servers, curve, seed, keep)
        create_topic(servers, made.topic, partitions)
        try:
            yield made
        finally:
            made.end()
            delete_topics(servers, [made.topic])
