"""Sending a load to Kafka: until Ctrl-C, and what was sent."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rheostat.cli import console
from rheostat.services.kafka_producer import Sent


@contextmanager
def until_interrupted() -> Iterator[Callable[[], bool]]:
    """The first Ctrl-C or SIGTERM only asks to stop, so that what was sent can be told; another one ends."""
    heard: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)

    def hear(number: int, _: object) -> None:
        heard.append(number)
        signal.signal(number, signal.default_int_handler)

    before = [signal.signal(number, hear) for number in numbers]
    try:
        yield lambda: bool(heard)
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
    if heard:
        console.fail("interrupted: what was due until now is sent")


def report(sent: Sent, topic: str, as_json: bool) -> None:
    """Say how many rows were sent, and how late."""
    if as_json:
        console.print_json(
            {
                "topic": topic,
                "rows": sent.rows,
                "wanted": sent.wanted,
                "failed": sent.failed,
                "seconds": sent.seconds,
                "rows_per_second": sent.rows_per_second,
                "behind_rows": sent.behind_rows,
                "behind_at_seconds": sent.behind_at_seconds,
            }
        )
        return
    rate, took = console.number(sent.rows_per_second), console.number(sent.seconds)
    print(f"{topic}: {sent.rows:,} rows sent in {took} s, {rate} rows/s")
    print(
        f"the curve wanted {sent.wanted:,} rows; at worst, {sent.behind_at_seconds:.1f} s after the start, "
        f"{sent.behind_rows:,} were late"
    )
    if sent.failed:
        console.fail(f"{console.count(sent.failed, 'row')} did not reach the broker: {sent.reason}")
