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

from rheostat.engines.spark import identity, protocol, wire
from rheostat.engines.spark.connection import DriverLostError
from rheostat.engines.spark.driver_process import DriverProcess
from rheostat.engines.spark.identity import Identity
from rheostat.engines.spark.spec import PID, Spec

SCRIPT = Path(__file__).with_name("scripted_driver.py")
LIMIT_SECONDS = 60.0
DESCRIBED = protocol.Description(
    steps=(), trigger_seconds=5.0, begun=True, parallelism={}, state={}, reserved=0, queries=()
)
DONE = wire.write_answer(protocol.Done())


def spec(folder: Path, socket: Path | str, token: str = "") -> Spec:
    """An application in a run's folder."""
    checkpoint = str(folder / "checkpoint")
    return Spec("app", "app.py", "local", str(folder), str(socket), checkpoint, token=token)


@contextmanager
def answering(path: str, answer: Callable[[str], bytes]) -> Iterator[None]:
    """A driver in this process: what it sends for each request, to the byte; b"" ends the connection."""

    class Handler(StreamRequestHandler):
        def handle(self) -> None:
            for line in self.rfile:
                if not (sent := answer(json.loads(line)["request"]["do"])):
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
def driver_process(
    folder: Path, batch_seconds: float = 0.0, described: bytes = wire.write_answer(DESCRIBED)
) -> Iterator[DriverProcess]:
    """A process with a scratch folder of its own, as `DriverProcess.start` makes them, and its files."""
    token = identity.new_token()
    application = spec(folder, DriverProcess.socket_path(), token)
    identity.mark_folder(application.scratch, token)
    application.write()
    answers = json.dumps({"describe": described.decode(), "": DONE.decode()})
    arguments = [application.socket, str(batch_seconds), str(folder / "done"), answers]
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), *arguments],
        env={**os.environ, identity.VARIABLE: token},
        start_new_session=True,
    )
    driver = DriverProcess(application, process.pid)
    driver.process = process
    try:
        Identity.of(process.pid).write(folder / PID)
        _wait_for_answer(driver)
        yield driver
    finally:
        driver.kill()


def _wait_for_answer(driver: DriverProcess) -> None:
    until = time.monotonic() + LIMIT_SECONDS
    while True:
        try:
            driver.ask(protocol.Ping())
            return
        except DriverLostError:
            assert driver.alive and time.monotonic() < until
            time.sleep(0.01)
