"""Scripted drivers in place of Spark's: one on a socket of this process, one as a process of its own."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingUnixStreamServer
from threading import Thread

from rheostat.engines.spark import identity
from rheostat.engines.spark.connection import DriverLostError
from rheostat.engines.spark.driver_process import DriverProcess
from rheostat.engines.spark.identity import Identity
from rheostat.engines.spark.spec import PID, Spec

SCRIPT = Path(__file__).with_name("scripted_driver.py")
LIMIT_SECONDS = 60.0


def spec(folder: Path, socket: Path | str, token: str = "") -> Spec:
    """An application in a run's folder."""
    checkpoint = str(folder / "checkpoint")
    return Spec("app", "app.py", "local", str(folder), str(socket), checkpoint, token=token)


@contextmanager
def answering(path: str, answer: Callable[[str], bytes]) -> Iterator[None]:
    """A driver in this process: what it sends for each request, to the byte; nothing ends the connection."""

    class Handler(StreamRequestHandler):
        def handle(self) -> None:
            for line in self.rfile:
                if not (sent := answer(json.loads(line)["do"])):
                    return
                self.connection.sendall(sent)
                if not sent.endswith(b"\n"):
                    return

    with ThreadingUnixStreamServer(path, Handler) as server:
        server.daemon_threads = True
        Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        try:
            yield
        finally:
            server.shutdown()


@contextmanager
def driver_process(folder: Path, batch_seconds: float = 0.0) -> Iterator[DriverProcess]:
    """A process with a scratch folder of its own, as `DriverProcess.start` makes them, and its files."""
    given = identity.new_token()
    described = spec(folder, DriverProcess.socket_path(), given)
    identity.mark_folder(described.scratch, given)
    described.write()
    arguments = [described.socket, str(batch_seconds), str(folder / "done")]
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), *arguments],
        env={**os.environ, identity.VARIABLE: given},
        start_new_session=True,
    )
    link = DriverProcess(described, process.pid)
    link.process = process
    try:
        Identity.of(process.pid).write(folder / PID)
        _wait_for_answer(link)
        yield link
    finally:
        link.kill()


def _wait_for_answer(link: DriverProcess) -> None:
    until = time.monotonic() + LIMIT_SECONDS
    while True:
        try:
            link.ask("describe")
            return
        except DriverLostError:
            assert link.alive and time.monotonic() < until
            time.sleep(0.01)
