"""How a command stops when it is interrupted."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from rheostat.cli import console


@dataclass
class Ending:
    """A command's exit code; after a signal it is 128 plus the signal's number, as usual."""

    code: int = 0


@contextmanager
def interruptible() -> Iterator[Ending]:
    """Stop a run cleanly on Ctrl-C, SIGTERM or SIGHUP; a second signal does not cut this short."""
    ending = Ending()

    def end(number: int, _frame: FrameType | None) -> None:
        if not ending.code:
            ending.code = 128 + number
            raise KeyboardInterrupt

    numbers = [
        n for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is not signal.SIG_IGN
    ]
    before = {number: signal.signal(number, end) for number in numbers}
    try:
        yield ending
    except KeyboardInterrupt:
        console.fail("interrupted: the run was stopped cleanly")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def stop_requested() -> Iterator[Callable[[], bool]]:
    """Yield whether Ctrl-C or SIGTERM asked to stop, so that a report can follow; a second one interrupts."""
    received: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)

    def note(number: int, _frame: FrameType | None) -> None:
        received.append(number)
        signal.signal(number, signal.default_int_handler)

    before = [signal.signal(number, note) for number in numbers]
    try:
        yield lambda: bool(received)
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
    if received:
        console.fail("interrupted: stopped after sending all rows that were due")
