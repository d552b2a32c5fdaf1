"""Samples what the source of a query was offered so far, where Spark's own reports do not tell it in time."""

import time
from collections import deque
from collections.abc import Callable
from math import isnan
from threading import Thread

from rheostat.engines.spark.driver.error_text import plain
from rheostat.engines.spark.events import MOST_BYTES
from rheostat.engines.spark.protocol import Arrival

SAMPLE_SECONDS = 0.25
FIRST_BACKOFF_SECONDS = 1.0
LONGEST_BACKOFF_SECONDS = 60.0
MOST_SAMPLES = 10_000


class Arrivals:
    """The samples of one query that nobody took yet."""

    def __init__(self, name: str, note: Callable[[str, str], None]) -> None:
        self._name, self._note = name, note
        self._samples: deque[Arrival] = deque(maxlen=MOST_SAMPLES)

    def start(self, count: Callable[[], float], wait: Callable[[float], bool]) -> None:
        """Sample what `count` returns, in a thread, until `wait`, after so many seconds, says to end."""
        name = f"arrivals-{self._name}"
        Thread(target=self._sample, args=(count, wait), name=name, daemon=True).start()

    def peek(self) -> tuple[Arrival, ...]:
        """The samples, for one who only looks."""
        return tuple(self._samples)

    def take(self) -> tuple[Arrival, ...]:
        """The samples since this was called last."""
        return tuple(self._samples.popleft() for _ in range(len(self._samples)))

    def _sample(self, count: Callable[[], float], wait: Callable[[float], bool]) -> None:
        backoff = 0.0
        while not wait(max(SAMPLE_SECONDS, backoff)):
            try:
                asked = time.time()
                rows = float(count())
                answered = (asked + time.time()) / 2  # a busy broker may take its time
                if isnan(rows):  # the stream has not begun
                    continue
                if not 0 <= rows <= MOST_BYTES:
                    raise ValueError(f"{rows:g} rows")
                self._samples.append((int(answered * 1000), rows))
                backoff = 0.0
            except Exception as error:  # the broker may be down only for a while
                if wait(0.0):
                    return
                if not backoff:
                    self._note("source", f"the offsets of {self._name} are unknown: {plain(error)}")
                backoff = min(LONGEST_BACKOFF_SECONDS, max(FIRST_BACKOFF_SECONDS, 2 * backoff))
