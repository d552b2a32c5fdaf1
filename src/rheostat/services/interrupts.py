"""Keeps Ctrl-C, SIGTERM and a closed terminal out of what must not be cut in two."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Finish what is within; a signal that came meanwhile takes hold afterwards.

    A process that is started and not yet noted would be nobody's: so starting and noting it are one step.
    """
    if threading.current_thread() is not threading.main_thread():  # signals reach the main thread alone
        yield
        return
    came: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        came.append(number)

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {n: signal.signal(n, note) for n in numbers if signal.getsignal(n) is not signal.SIG_IGN}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])
