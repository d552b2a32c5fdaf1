"""The rows that go in, and the check of what came out."""

import json
import time
from collections import Counter
from pathlib import Path
from threading import Event, Thread
from typing import Any

from confluent_kafka import Producer

KEYS, SPAN = 8, 500  # as in the application
TICK_SECONDS = 0.05
FLUSH_SECONDS = 60.0


class Sender:
    """Sends the rows 0, 1, 2, ... to a topic, each exactly once, whatever happens to the broker."""

    def __init__(self, servers: str, topic: str, rows_per_second: float) -> None:
        self.sent = 0  # the next row's number
        self.failed: list[str] = []
        self.rate = rows_per_second
        self._topic, self._end = topic, Event()
        settings: dict[str, Any] = {
            "bootstrap.servers": servers,
            "enable.idempotence": True,
            "message.timeout.ms": 0,
            "linger.ms": 20,
            "reconnect.backoff.max.ms": 1000,
            "log_level": 0,
        }
        self._producer = Producer(settings)
        self._thread = Thread(target=self._run, name="sender", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        due, last = 0.0, time.monotonic()
        while not self._end.wait(TICK_SECONDS):
            now = time.monotonic()
            due, last = due + (now - last) * self.rate, now
            for _ in range(int(due)):
                self._producer.produce(
                    self._topic, str(self.sent), str(self.sent % KEYS), callback=self._note_error
                )
                self.sent += 1
            due -= int(due)
            self._producer.poll(0)

    def _note_error(self, error: Any, _message: Any) -> None:
        if error is not None:
            self.failed.append(str(error))

    def stop(self) -> int:
        """Stop sending; return the number of rows."""
        self._end.set()
        self._thread.join()
        left = self._producer.flush(FLUSH_SECONDS)
        assert not left and not self.failed, f"{left} rows not delivered, {self.failed[:3]}"
        return self.sent


class Sink:
    """What the application wrote: a file per batch; the last file of a group counts."""

    def __init__(self, folder: Path, checkpoint: Path) -> None:
        self._folder, self._commits = folder, checkpoint / "commits"

    def newest(self) -> int:
        """Return the largest row in the last committed batches, -1 without any."""
        return max((self._newest(number) for number in self._committed()[-3:]), default=-1)

    def _newest(self, number: int) -> int:
        file = self._folder / f"{number}.json"
        return max((max(group["rows"]) for group in _read(file)), default=-1)

    def _committed(self) -> list[int]:
        if not self._commits.exists():
            return []
        return sorted(int(file.name) for file in self._commits.iterdir() if file.name.isdigit())

    def check(self, rows: int) -> None:
        """Check that every row 0..rows-1 is exactly once in the state and in the sink."""
        last: dict[tuple[int, int], dict[str, Any]] = {}
        for file in sorted(self._folder.glob("*.json"), key=lambda file: int(file.stem)):
            last |= {(group["key"], group["span"]): group for group in _read(file)}
        expected: dict[tuple[int, int], list[int]] = {}
        for row in range(rows):
            expected.setdefault((row % KEYS, row // SPAN), []).append(row)
        held = Counter(row for group in last.values() for row in group["rows"])
        lost, doubled = [row for row in range(rows) if not held[row]], [r for r, n in held.items() if n > 1]
        assert not lost and not doubled, (
            f"lost {len(lost)}: {lost[:9]}; doubled {len(doubled)}: {doubled[:9]}"
        )
        totals = {name: (group["count"], group["sum"]) for name, group in last.items()}
        assert totals == {name: (len(those), sum(those)) for name, those in expected.items()}


def _read(file: Path) -> list[dict[str, Any]]:
    try:
        result: list[dict[str, Any]] = json.loads(file.read_text())
    except FileNotFoundError:  # a batch without rows, or one that rewrote the state
        return []
    return result
