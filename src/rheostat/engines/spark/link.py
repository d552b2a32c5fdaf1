"""The controller's side of a driver process: starts it, asks it, ends it. Needs no Spark itself."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rheostat.engines.spark.spec import FAILURE, LOG, PID, SPEC, Spec
from rheostat.infrastructure import keeper
from rheostat.model.errors import RheostatError, UserError

START_SECONDS = 90.0
ANSWER_SECONDS = 60.0
STOP_SECONDS = 30.0


class DriverLostError(RheostatError):
    """The driver process is gone or does not answer."""


class Link:
    """A running driver process."""

    def __init__(self, spec: Spec, pid: int) -> None:
        self.spec, self.pid = spec, pid
        self.process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._file: Any = None

    @staticmethod
    def socket_path() -> str:
        """A place for the socket: paths of sockets are short, those of users are not."""
        return str(Path(tempfile.mkdtemp(prefix="rheostat-")) / "driver")

    @classmethod
    def start(cls, spec: Spec, on_tick: Callable[[], None] = lambda: None) -> "Link":
        """Start a driver process and wait until it answers."""
        folder = Path(spec.folder)
        (folder / FAILURE).unlink(missing_ok=True)
        path = spec.write()
        with (folder / LOG).open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "rheostat.engines.spark.driver", str(path)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable},
                start_new_session=True,
            )
        (folder / PID).write_text(str(process.pid))
        link = cls(spec, process.pid)
        link.process = process
        try:
            link._wait_for_answer(on_tick)
        except BaseException:
            link.kill()
            raise
        return link

    @classmethod
    def attach(cls, folder: Path) -> "Link | None":
        """Find the driver process that an earlier controller left running, if it still answers."""
        try:
            link = cls(Spec.read(folder / SPEC), int((folder / PID).read_text()))
            link.ask("describe")
        except (OSError, ValueError, RheostatError):
            return None
        return link

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        if self.process is not None:
            return self.process.poll() is None
        return Path(f"/proc/{self.pid}").exists()

    def ask(self, what: str, timeout: float = ANSWER_SECONDS, **about: Any) -> Any:
        """Send a request and wait for its answer; what the driver refuses is a UserError."""
        try:
            if self._file is None:
                self._connect()
            assert self._socket is not None
            self._socket.settimeout(timeout)
            self._file.write(json.dumps({"do": what, **about}).encode() + b"\n")
            self._file.flush()
            line = self._file.readline()
        except OSError as error:
            self._hang_up()
            raise DriverLostError(f"the driver does not answer: {error}") from None
        if not line:
            self._hang_up()
            raise DriverLostError("the driver is gone")
        answer = json.loads(line)
        if "error" in answer:
            raise (UserError if answer["refused"] else RheostatError)(answer["error"])
        return answer["ok"]

    def failure(self) -> RheostatError:
        """Why the driver process ended, as an error to raise."""
        folder = Path(self.spec.folder)
        try:
            left = json.loads((folder / FAILURE).read_text())
        except (OSError, ValueError):
            return RheostatError(f"the driver process ended; its log is {folder / LOG}")
        return (UserError if left["refused"] else RheostatError)(left["message"])

    def stop(self) -> None:
        """End the application between two batches, then its process."""
        with contextlib.suppress(RheostatError):
            self.ask("stop", timeout=STOP_SECONDS)
        until = time.monotonic() + STOP_SECONDS
        while self.alive and time.monotonic() < until:
            time.sleep(0.05)
        self.kill()

    def kill(self) -> None:
        """End the process and all that it started, at once."""
        self._hang_up()
        keeper.end_session(self.pid)
        if self.process is not None:
            self.process.wait()
        shutil.rmtree(Path(self.spec.socket).parent, ignore_errors=True)

    def crash(self) -> None:
        """SIGKILL, as the operating system does it when memory runs out; tests and chaos use it."""
        os.killpg(self.pid, signal.SIGKILL)

    def _wait_for_answer(self, on_tick: Callable[[], None]) -> None:
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            if not self.alive:
                raise self.failure()
            with contextlib.suppress(DriverLostError):
                self.ask("describe")
                return
            on_tick()
            time.sleep(0.1)
        raise RheostatError(
            f"the driver did not start within {START_SECONDS:g} s; see {self.spec.folder}/{LOG}"
        )

    def _connect(self) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(ANSWER_SECONDS)
        self._socket.connect(self.spec.socket)
        self._file = self._socket.makefile("rwb")

    def _hang_up(self) -> None:
        for thing in (self._file, self._socket):
            if thing is not None:
                with contextlib.suppress(OSError):
                    thing.close()
        self._file = self._socket = None
