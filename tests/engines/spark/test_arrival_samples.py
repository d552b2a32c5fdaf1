"""How a source's own count is sampled: what is kept, and what the user hears of."""

import math
import threading
from collections.abc import Iterator

import pytest

from rheostat.engines.spark.driver.arrivals import FIRST_BACKOFF_SECONDS, SAMPLE_SECONDS, Arrivals


def sampled(*counts: float) -> tuple[list[float], list[str], list[float]]:
    """The rows that were kept, the notes, and the waits, after these answers of a source."""
    notes, waits, over = list[str](), list[float](), threading.Event()
    answers: Iterator[float] = iter(counts)

    def wait(seconds: float) -> bool:
        if seconds:
            waits.append(seconds)
        return over.is_set()

    def count() -> float:
        answer = next(answers)
        if answer == counts[-1]:
            over.set()
        return answer

    arrivals = Arrivals("in", lambda kind, text: notes.append(f"{kind}: {text}"))
    arrivals.start(count, wait)
    assert over.wait(10)
    for thread in threading.enumerate():
        if thread.name == "arrivals-in":
            thread.join(10)
    return [rows for _, rows in arrivals.take()], notes, waits


def test_a_stream_that_has_not_begun_has_no_count_and_nobody_is_told() -> None:
    kept, notes, waits = sampled(math.nan, math.nan, 0.0, 50.0)
    assert (kept, notes) == ([0.0, 50.0], [])
    assert set(waits) == {SAMPLE_SECONDS}


@pytest.mark.parametrize("count", [-1.0, math.inf])
def test_a_count_that_makes_no_sense_is_told_once_and_asked_for_less_often(count: float) -> None:
    kept, notes, waits = sampled(count, count, 7.0)
    assert kept == [7.0]
    assert notes == [f"source: the offsets of in are unknown: {count:g} rows"]
    assert waits[1] == FIRST_BACKOFF_SECONDS
