"""Signals wait until what must not be cut in two is done."""

import signal
import threading
from types import FrameType

import pytest

from rheostat.services.interrupts import uninterrupted


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_handled_once_after_the_block(number: signal.Signals) -> None:
    done, observed = [], []

    def handler(number: int, _frame: FrameType | None) -> None:
        observed.append(number)
        raise KeyboardInterrupt

    before = signal.signal(number, handler)
    try:
        with pytest.raises(KeyboardInterrupt), uninterrupted():
            signal.raise_signal(number)
            signal.raise_signal(number)
            done.append("all of it")
        assert (done, observed) == (["all of it"], [number])
        assert signal.getsignal(number) is handler
    finally:
        signal.signal(number, before)


def test_in_another_thread_signals_are_not_delayed() -> None:
    handlers = []

    def work() -> None:
        with uninterrupted():
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    before = signal.getsignal(signal.SIGINT)
    thread.start()
    thread.join()
    assert handlers == [before]
