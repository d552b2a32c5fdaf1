"""A controller and a driver process on a real socket, without Spark."""

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingUnixStreamServer
from threading import Event, Thread

import pytest

from rheostat.engines.spark.link import Link
from rheostat.engines.spark.spec import Spec

INTERRUPTED = Event()


class Driver(StreamRequestHandler):
    """Tells every request what it was; a report only after the interrupt."""

    def handle(self) -> None:
        for line in self.rfile:
            asked = json.loads(line)["do"]
            if asked == "report":
                INTERRUPTED.wait()
            with suppress(OSError):  # nobody listens any more
                self.connection.sendall(json.dumps({"ok": asked}).encode() + b"\n")


@contextmanager
def driver_at(path: str) -> Iterator[None]:
    with ThreadingUnixStreamServer(path, Driver) as server:
        server.daemon_threads = True
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield
        finally:
            server.shutdown()


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
    path = str(tmp_path / "s")
    link = Link(Spec("app", "app.py", "local", str(tmp_path), path, str(tmp_path / "checkpoint")), pid=0)
    with driver_at(path):
        assert link.ask("describe") == "describe"
        with pytest.raises(KeyboardInterrupt), interrupted_after(0.2):
            link.ask("report")
        INTERRUPTED.set()
        assert link.ask("stop") == "stop"
    link.hang_up()
