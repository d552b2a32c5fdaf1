"""A controller and a driver process on a real socket, without Spark."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import pytest

from rheostat.engines.spark.driver_process import DriverLostError, DriverProcess, EndedError
from rheostat.engines.spark.spec import FAILURE
from rheostat.model.errors import RheostatError, UserError

from .scripted import answering, spec


def link_to(folder: Path) -> DriverProcess:
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


def test_an_answer_that_an_interrupt_cut_off_is_not_the_next_one_s(tmp_path: Path) -> None:
    link, interrupted = link_to(tmp_path), Event()

    def answer(asked: str) -> bytes:
        if asked == "report":
            interrupted.wait()
            return b""
        return json.dumps({"ok": asked}).encode() + b"\n"

    with answering(link.spec.socket, answer):
        assert link.ask("describe") == "describe"
        with pytest.raises(KeyboardInterrupt), interrupted_after(0.2):
            link.ask("report")
        interrupted.set()
        assert link.ask("stop") == "stop"
    link.hang_up()


@pytest.mark.parametrize(
    "sent",
    [
        b'{"ok": {"executors": [{"id": "0", "ho',  # it died while it wrote
        b'{"ok": null}',  # whole by chance, but the driver is gone
        b"",
        b'{"ok": {"executors"\n',
        b"\xff\xfe\n",
        b"[1, 2]\n",
        b"null\n",
        b"{}\n",
        b'{"error": 1}\n',
        b"[" * 100_000 + b"\n",
    ],
    ids=lambda sent: repr(sent[:20]),
)
def test_half_an_answer_is_a_lost_driver_and_the_next_request_calls_anew(tmp_path: Path, sent: bytes) -> None:
    link, answers = link_to(tmp_path), iter([sent, b'{"ok": "whole"}\n'])
    with answering(link.spec.socket, lambda _: next(answers)):
        with pytest.raises(DriverLostError, match="the driver"):
            link.ask("report")
        assert link.ask("report") == "whole"
    link.hang_up()


def test_what_a_driver_refuses_is_the_user_s_mistake_and_other_errors_are_not(tmp_path: Path) -> None:
    link = link_to(tmp_path)
    answers = iter([b'{"error": "no", "refused": true}\n', b'{"error": "broken"}\n'])
    with answering(link.spec.socket, lambda _: next(answers)):
        with pytest.raises(UserError, match="no"):
            link.ask("rescale")
        with pytest.raises(RheostatError, match="broken") as told:
            link.ask("rescale")
    assert type(told.value) is RheostatError
    link.hang_up()


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
def test_half_a_note_of_why_a_driver_ended_is_no_note(tmp_path: Path, left: str) -> None:
    (tmp_path / FAILURE).write_text(left)
    failure = link_to(tmp_path).failure()
    assert type(failure) is RheostatError
    assert "the driver process ended; its log is" in str(failure)


def test_a_whole_note_says_why_a_driver_ended(tmp_path: Path) -> None:
    link = link_to(tmp_path)
    (tmp_path / FAILURE).write_text('{"ended": true, "refused": false, "message": ""}')
    assert isinstance(link.failure(), EndedError)
    (tmp_path / FAILURE).write_text('{"ended": false, "refused": true, "message": "line 3"}')
    assert isinstance(link.failure(), UserError) and str(link.failure()) == "line 3"


def test_another_process_at_the_driver_s_socket_is_not_listened_to(tmp_path: Path) -> None:
    link = DriverProcess(spec(tmp_path, tmp_path / "s"), os.getppid())
    with (
        answering(link.spec.socket, lambda _: b'{"ok": "listen to me"}\n'),
        pytest.raises(DriverLostError, match="does not listen"),
    ):
        link.ask("describe")
