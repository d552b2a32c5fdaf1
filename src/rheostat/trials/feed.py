"""Sends a trial's load through its own topic, in its own process."""

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
    """Sends a curve to a topic, from `begin` on."""

    servers: str
    curve: str
    seed: int
    keep: Callable[[int], None]  # registers the sender, to be stopped with this process
    topic: str = field(default_factory=lambda: f"rheostat-feed-{secrets.token_hex(6)}")
    _process: "subprocess.Popen[bytes] | None" = None

    def begin(self) -> None:
        """Start sending."""
        command = ["load", "run", self.curve, "--kafka", self.topic, "--servers", self.servers]
        with uninterrupted():
            self._process = subprocess.Popen(
                [sys.executable, "-m", "rheostat", *command, "--seed", str(self.seed)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            self.keep(self._process.pid)

    def check(self) -> None:
        """Raise RheostatError if the sender failed."""
        if self._process and self._process.poll():
            raise RheostatError(f"the load generator failed with exit code {self._process.returncode}")

    def end(self) -> None:
        """Stop sending."""
        if self._process:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait()


@contextmanager
def feeding(servers: str, curve: str, seed: int, partitions: int) -> Iterator[Feed]:
    """Create the topic; on exit stop the sender and delete the topic."""
    from rheostat.services.kafka_topics import (  # noqa: PLC0415 - most trials need no Kafka client
        create_topic,
        delete_topics,
    )

    with sessions_ended_on_exit() as keep:
        feed = Feed(servers, curve, seed, keep)
        create_topic(servers, feed.topic, partitions)
        try:
            yield feed
        finally:
            feed.end()
            delete_topics(servers, [feed.topic])
