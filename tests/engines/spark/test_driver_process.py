"""A controller and a driver process on a real socket, without Spark."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import pytest

from rheostat.engines.spark.driver_process import DriverLostError, DriverProcess, EndedError
from rheostat.engines.spark.protocol import (
    PROTOCOL_VERSION,
    Describe,
    Done,
    Ping,
    Report,
    Rescale,
    Stop,
    TakeReport,
)
from rheostat.engines.spark.spec import FAILURE
from rheostat.engines.spark.wire import failed, write_answer
from rheostat.model.errors import RheostatError, UserError

from .scripted import DESCRIBED, DONE, answering, spec

REPORT = Report((), (), ())
BEGUN = f'{{"version":{PROTOCOL_VERSION},"answer":'.encode()


def driver_in(folder: Path) -> DriverProcess:
    return DriverProcess(spec(folder, folder / "s"), os.getpid())


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_the_late_answer_to_an_interrupted_request_does_not_reach_the_next_one(tmp_path: Path) -> None:
    driver, interrupted = driver_in(tmp_path), Event()

    def answer(asked: str) -> bytes:
        if asked == "report":
            interrupted.wait()
            return b""
        return write_answer(DESCRIBED) if asked == "describe" else DONE

    with answering(driver.spec.socket, answer):
        assert driver.ask(Describe()) == DESCRIBED
        with pytest.raises(KeyboardInterrupt), interrupted_after(0.2):
            driver.ask(TakeReport())
        interrupted.set()
        assert driver.ask(Stop()) == Done()
    driver.hang_up()


@pytest.mark.parametrize(
    "sent",
    [
        BEGUN + b'{"executors":[{"id":"0","ho',  # it died while it wrote
        write_answer(REPORT).rstrip(),  # whole by chance, but the driver is gone
        b"",
        BEGUN + b'{"executors"\n',
        b"\xff\xfe\n",
        b"[1, 2]\n",
        b"null\n",
        b"{}\n",
        BEGUN + b'{"kind":"failed","error":1}}\n',
        DONE,  # the answer to another request
        b"[" * 100_000 + b"\n",
    ],
    ids=lambda sent: repr(sent[:20]),
)
def test_a_malformed_answer_means_a_lost_driver_and_the_next_request_connects_again(
    tmp_path: Path, sent: bytes
) -> None:
    driver, answers = driver_in(tmp_path), iter([sent, write_answer(REPORT)])
    with answering(driver.spec.socket, lambda _: next(answers)):
        with pytest.raises(DriverLostError, match="the driver"):
            driver.ask(TakeReport())
        assert driver.ask(TakeReport()) == REPORT
    driver.hang_up()


def test_what_a_driver_refuses_is_a_user_error_and_other_failures_are_not(tmp_path: Path) -> None:
    driver = driver_in(tmp_path)
    answers = iter([write_answer(failed("no", refused=True)), write_answer(failed("broken"))])
    with answering(driver.spec.socket, lambda _: next(answers)):
        with pytest.raises(UserError, match="no"):
            driver.ask(Rescale("total", 3))
        with pytest.raises(RheostatError, match="broken") as raised:
            driver.ask(Rescale("total", 3))
    assert type(raised.value) is RheostatError
    driver.hang_up()


@pytest.mark.parametrize(
    "left",
    [
        "",
        '{"ended": false, "refu',
        "[]",
        "null",
        "{}",
        '{"ended": true}',
        '{"refused": true, "message": "x"}',
        "[" * 100_000,
    ],
    ids=lambda left: repr(left[:20]),
)
def test_an_incomplete_note_of_why_a_driver_ended_is_ignored(tmp_path: Path, left: str) -> None:
    (tmp_path / FAILURE).write_text(left)
    failure = driver_in(tmp_path).failure()
    assert type(failure) is RheostatError
    assert "the driver process ended; its log is" in str(failure)


def test_a_complete_note_says_why_a_driver_ended(tmp_path: Path) -> None:
    driver = driver_in(tmp_path)
    (tmp_path / FAILURE).write_text('{"ended": true, "refused": false, "message": ""}')
    assert isinstance(driver.failure(), EndedError)
    (tmp_path / FAILURE).write_text('{"ended": false, "refused": true, "message": "line 3"}')
    assert isinstance(driver.failure(), UserError) and str(driver.failure()) == "line 3"


def test_another_process_at_the_drivers_socket_is_refused(tmp_path: Path) -> None:
    driver = DriverProcess(spec(tmp_path, tmp_path / "s"), os.getppid())
    with (
        answering(driver.spec.socket, lambda _: DONE),
        pytest.raises(DriverLostError, match="does not listen"),
    ):
        driver.ask(Ping())
