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
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil

from rheostat.engines.spark.spec import FAILURE, LOG, PID, SPEC, Spec
from rheostat.infrastructure import keeper
from rheostat.infrastructure.interrupts import uninterrupted
from rheostat.model.errors import RheostatError, UserError
from rheostat.model.secrets import hide, secret_values, without_secrets

START_SECONDS = 90.0
ANSWER_SECONDS = 60.0
STOP_SECONDS = 30.0
_MODULE = "rheostat.engines.spark.driver"


class DriverLostError(RheostatError):
    """The driver process is gone or does not answer."""


class EndedError(RheostatError):
    """The application ended by itself, without an error."""


class Link:
    """A running driver process."""

    def __init__(self, spec: Spec, pid: int) -> None:
        self.spec, self.pid = spec, pid
        self.process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._file: Any = None

    @staticmethod
    def socket_path(scratch: Path | None = None) -> str:
        """A place for the socket, alone in its folder: paths of sockets are short, those of users are not."""
        return str(Path(tempfile.mkdtemp(prefix="rheostat-", dir=scratch)) / "driver")

    @classmethod
    def start(cls, spec: Spec, keep: Callable[[int], None] = lambda _: None) -> "Link":
        """Start a driver process, tell whoever shall end it with us, and wait until it answers."""
        folder = Path(spec.folder)
        (folder / FAILURE).unlink(missing_ok=True)
        path = spec.write()
        link = None
        try:
            with (folder / LOG).open("ab") as log, uninterrupted():
                process = subprocess.Popen(
                    [sys.executable, "-m", _MODULE, str(path)],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=_environment(spec),
                    start_new_session=True,
                )
                link = cls(spec, process.pid)
                link.process = process
                keep(process.pid)
            (folder / PID).write_text(str(process.pid))
            link._wait_for_answer()
        except BaseException:
            if link is not None:
                link.kill()
            raise
        return link

    @classmethod
    def attach(cls, folder: Path) -> "Link | None":
        """Find the driver process that an earlier controller left running; one that hangs is ended."""
        try:
            link = cls(Spec.read(folder / SPEC), int((folder / PID).read_text()))
        except (OSError, ValueError):
            return None
        if not link.alive:
            return None
        try:
            link.ask("describe")
        except RheostatError:
            link.kill()
            return None
        return link

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        if self.process is not None:
            return self.process.poll() is None
        try:  # not our child: what died may be a zombie of somebody's, and its number another's by now
            process = psutil.Process(self.pid)
            return process.status() != psutil.STATUS_ZOMBIE and _MODULE in process.cmdline()
        except psutil.Error:
            return False

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
            self.hang_up()
            raise DriverLostError(f"the driver does not answer: {error}") from None
        except BaseException:  # an interrupt: the answer to this request is not the next one's
            self.hang_up()
            raise
        if not line:
            self.hang_up()
            raise DriverLostError("the driver is gone")
        answer = self._hide(json.loads(line))
        if "error" in answer:
            raise (UserError if answer["refused"] else RheostatError)(answer["error"])
        return answer["ok"]

    def failure(self) -> RheostatError:
        """Why the driver process ended, as an error to raise."""
        folder = Path(self.spec.folder)
        try:
            left = self._hide(json.loads((folder / FAILURE).read_text()))
        except (OSError, ValueError):
            return RheostatError(f"the driver process {self._end()}; its log is {folder / LOG}")
        if left["ended"]:
            return EndedError("the application ended")
        return (UserError if left["refused"] else RheostatError)(left["message"])

    def _hide(self, answer: dict[str, Any]) -> dict[str, Any]:
        """What the driver says ends up in the journal and on screens, where no secret belongs."""
        values = secret_values(self.spec.settings)
        told: dict[str, Any] = hide(answer, values) if values else answer
        return told

    def _forget_secrets(self) -> None:
        """Leave no secret in the run's folder: only who attaches to a running driver needs them there."""
        known = without_secrets(self.spec.settings)
        if known != self.spec.settings and (Path(self.spec.folder) / SPEC).exists():
            with contextlib.suppress(OSError):  # a full disk; nobody else can read the file
                replace(self.spec, settings=known).write()

    def _end(self) -> str:
        code = None if self.process is None else self.process.poll()
        if self.alive:
            return "does not answer"
        return f"was killed by signal {-code}" if code is not None and code < 0 else "ended"

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
        self.hang_up()
        keeper.end_session(self.pid)
        if self.process is not None:
            self.process.wait()
        shutil.rmtree(Path(self.spec.socket).parent, ignore_errors=True)
        self._forget_secrets()

    def crash(self) -> None:
        """SIGKILL, as the operating system does it when memory runs out; tests and chaos use it."""
        os.killpg(self.pid, signal.SIGKILL)

    def _wait_for_answer(self) -> None:
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            if not self.alive:
                raise self.failure()
            with contextlib.suppress(DriverLostError):
                self.ask("describe")
                return
            time.sleep(0.1)
        raise RheostatError(
            f"the driver did not start within {START_SECONDS:g} s; see {self.spec.folder}/{LOG}"
        )

    def _connect(self) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(ANSWER_SECONDS)
        self._socket.connect(self.spec.socket)
        self._file = self._socket.makefile("rwb")

    def hang_up(self) -> None:
        """Close the connection; the next request opens another. Whoever waits for an answer gets none."""
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
        for thing in (self._file, self._socket):
            if thing is not None:
                with contextlib.suppress(OSError):
                    thing.close()
        self._file = self._socket = None


def _environment(spec: Spec) -> dict[str, str]:
    """The driver's: its scratch files lie beside its socket, so that they go with it, however it ends."""
    address, scratch = spec.spark_settings().get("spark.driver.bindAddress"), str(Path(spec.socket).parent)
    unpacked = f'"-Djava.io.tmpdir={scratch}"'  # libraries: a JVM that is killed leaves them
    return {
        "SPARK_LOCAL_DIRS": scratch,
        **os.environ,
        "SPARK_SUBMIT_OPTS": f"{unpacked} {os.environ.get('SPARK_SUBMIT_OPTS', '')}".strip(),
        **({"SPARK_LOCAL_IP": address} if address else {}),
        "PYSPARK_PYTHON": sys.executable,
    }
