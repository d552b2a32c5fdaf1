"""How a command ends when it is interrupted."""

import signal
from collections.abc import Iterator
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
    """Stop a run in order on Ctrl-C, SIGTERM or SIGHUP; a second signal does not cut the stop short."""
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
        console.fail("interrupted: the run was ended in order")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
