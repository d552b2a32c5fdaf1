"""The controller's side of a driver process: starts it, asks it, ends it. Needs no Spark itself."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from rheostat.engines.spark import identity
from rheostat.engines.spark.connection import ANSWER_SECONDS, Connection, DriverLostError, DriverSilentError
from rheostat.engines.spark.ending import end_in_order
from rheostat.engines.spark.identity import Identity
from rheostat.engines.spark.limits import LIMITS, Limits
from rheostat.engines.spark.spec import FAILURE, LOG, PID, SPEC, Spec
from rheostat.model.errors import RheostatError, UserError
from rheostat.model.secrets import hide, secret_values, without_secrets
from rheostat.services import cleanup_process
from rheostat.services.interrupts import uninterrupted

__all__ = ["DriverLostError", "DriverProcess", "EndedError"]

START_SECONDS = 90.0
_MODULE = "rheostat.engines.spark.driver"


Keep = Callable[[int], Callable[[], None]]  # told of a process to end with us; returns how to forget it


def _nothing() -> None:
    pass


def keep_nothing(_pid: int) -> Callable[[], None]:
    """A driver on somebody else's cluster outlives its controller."""
    return _nothing


class EndedError(RheostatError):
    """The application ended by itself, without an error."""


class DriverProcess:
    """A running driver process."""

    def __init__(self, spec: Spec, pid: int, found: Identity | None = None) -> None:
        self.spec, self.pid = spec, pid
        self.process: subprocess.Popen[bytes] | None = None  # None: an earlier controller started it
        self._found = found
        self._connection = Connection(spec.socket, pid)
        self._forget: Callable[[], None] = _nothing

    @staticmethod
    def socket_path(scratch: Path | None = None) -> str:
        """A place for the socket, alone in its folder."""
        return str(identity.make_folder(scratch) / "driver")

    @classmethod
    def start(cls, spec: Spec, keep: Keep = keep_nothing) -> "DriverProcess":
        """Start a driver process, tell whoever shall end it with us, and wait until it answers."""
        spec = replace(spec, token=identity.new_token())
        folder, link = Path(spec.folder), None
        try:
            (folder / FAILURE).unlink(missing_ok=True)
            identity.mark_folder(spec.scratch, spec.token)
            path = spec.write()
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
                link._forget = keep(process.pid)
            with contextlib.suppress(ProcessLookupError):  # it ended already
                Identity.of(process.pid).write(folder / PID)
            link._wait_for_answer()
        except BaseException:
            (link or cls(spec, pid=0)).kill()
            raise
        return link

    @classmethod
    def attach(cls, folder: Path) -> "DriverProcess | None":
        """Find the driver that an earlier controller left running; of one that hangs or died, clear the rest.

        Nothing in the folder is trusted: what does not prove to be this run's is left alone.
        """
        try:
            spec, found = Spec.read(folder / SPEC), Identity.read(folder / PID)
            if Path(spec.folder).resolve() != folder.resolve():  # a copy: the driver is the original's
                return None
        except (OSError, ValueError):
            return None
        link = cls(spec, found.pid, found)
        if link.alive:
            with contextlib.suppress(RheostatError):
                link.ask("describe")
                return link
        link.kill()
        return None

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        if self.process is not None:
            return self.process.poll() is None
        return self._found is not None and self._found.is_alive(self.spec.token)

    def ask(self, what: str, timeout: float = ANSWER_SECONDS, **about: Any) -> Any:
        """Send a request and wait for its answer; what the driver refuses is a UserError."""
        answer = self._hide(self._connection.ask({"do": what, **about}, timeout))
        if "error" in answer:
            raise (UserError if answer.get("refused") else RheostatError)(answer["error"])
        return answer["ok"]

    @property
    def has_left_word(self) -> bool:
        """Whether the driver said why it ends; Spark itself may take longer."""
        return (Path(self.spec.folder) / FAILURE).exists()

    def failure(self) -> RheostatError:
        """Why the driver process ended, as an error to raise."""
        folder = Path(self.spec.folder)
        try:
            left = self._hide(json.loads((folder / FAILURE).read_text()))
            ended, refused, message = left["ended"] is True, left["refused"] is True, str(left["message"])
        except (OSError, ValueError, LookupError, TypeError, RecursionError):  # none, or half of one
            return RheostatError(f"the driver process {self._end()}; its log is {folder / LOG}")
        if ended:
            return EndedError("the application ended")
        return (UserError if refused else RheostatError)(message)

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

    def stop(self, say: Callable[[str], None] = lambda _: None, limits: Limits = LIMITS) -> None:
        """End the application between two batches, then its process."""
        end_in_order(self, limits, say)

    def begin_stop(self) -> bool:
        """Ask it to stop, without waiting for the answer; whether the request was sent."""
        self.hang_up()
        with contextlib.suppress(DriverLostError):
            self._connection.send({"do": "stop"})
            return True
        return False

    def has_stopped(self, seconds: float) -> bool:
        """Wait so long for the answer; whether it came, or the connection ended."""
        return self._connection.wait(seconds)

    def is_silent(self, seconds: float) -> bool:
        """Whether it answers nothing at all for so long; one that refuses to answer is about to end."""
        connection = Connection(self.spec.socket, self.pid)
        try:
            connection.ask({"do": "ping"}, seconds)
        except DriverSilentError:
            return True
        except DriverLostError:
            return False
        finally:
            connection.hang_up()
        return False

    def kill(self) -> None:
        """End the process and all that it started, at once; what is not proven to be its own stays."""
        self.hang_up()
        if self.process is not None:
            cleanup_process.end_session(self.pid)
            self.process.wait()
            shutil.rmtree(self.spec.scratch, ignore_errors=True)
            self._forget()
            self._forget = _nothing
        else:
            identity.end_session(self.pid, self.spec.token)
            identity.remove_folder(self.spec.scratch, self.spec.token)
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

    def hang_up(self) -> None:
        """Close the connection; the next request opens another. Whoever waits for an answer gets none."""
        self._connection.hang_up()


def _environment(spec: Spec) -> dict[str, str]:
    """The driver's: its scratch files lie beside its socket, so that they go with it, however it ends."""
    address, scratch = spec.spark_settings().get("spark.driver.bindAddress"), str(spec.scratch)
    unpacked = f'"-Djava.io.tmpdir={scratch}"'  # libraries: a JVM that is killed leaves them
    return {
        "SPARK_LOCAL_DIRS": scratch,
        **os.environ,
        "SPARK_SUBMIT_OPTS": f"{unpacked} {os.environ.get('SPARK_SUBMIT_OPTS', '')}".strip(),
        **({"SPARK_LOCAL_IP": address} if address else {}),
        "PYSPARK_PYTHON": sys.executable,
        identity.VARIABLE: spec.token,
    }
