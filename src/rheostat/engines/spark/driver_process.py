"""The controller's side of a driver process: starts it, sends it requests, ends it. Needs no Spark itself."""

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

from rheostat.engines.spark import identity
from rheostat.engines.spark.connection import Connection, DriverLostError, DriverSilentError
from rheostat.engines.spark.ending import end_in_order
from rheostat.engines.spark.identity import Identity
from rheostat.engines.spark.limits import LIMITS, Limits
from rheostat.engines.spark.protocol import ANSWER_SECONDS, A, Describe, Ping, Request, Stop
from rheostat.engines.spark.spec import FAILURE, LOG, PID, SPEC, Spec
from rheostat.engines.spark.wire import OtherVersionError, ProtocolError, read_answer, write_request
from rheostat.model.errors import RheostatError, UserError
from rheostat.model.secrets import hide, secret_values, without_secrets
from rheostat.services import cleanup_process
from rheostat.services.interrupts import uninterrupted

__all__ = ["DriverLostError", "DriverProcess", "EndedError"]

START_SECONDS = 90.0
_MODULE = "rheostat.engines.spark.driver"

Keep = Callable[[int], Callable[[], None]]  # ends this process when we end; returns how to cancel that


def _nothing() -> None:
    pass


def keep_nothing(_pid: int) -> Callable[[], None]:
    """A driver on a cluster that is not ours outlives its controller."""
    return _nothing


class EndedError(RheostatError):
    """The application ended by itself, without an error."""


class DriverProcess:
    """A running driver process, and the channel to it."""

    def __init__(self, spec: Spec, pid: int, identity_on_file: Identity | None = None) -> None:
        self.spec, self.pid = spec, pid
        self.process: subprocess.Popen[bytes] | None = None  # None: an earlier controller started it
        self._identity = identity_on_file
        self._connection = Connection(spec.socket, pid)
        self._forget: Callable[[], None] = _nothing

    @staticmethod
    def socket_path(scratch: Path | None = None) -> str:
        """A path for the socket, in a new folder of its own."""
        return str(identity.make_folder(scratch) / "driver")

    @classmethod
    def start(cls, spec: Spec, keep: Keep = keep_nothing) -> "DriverProcess":
        """Start a driver process, register it with `keep`, and wait until it answers."""
        spec = replace(spec, token=identity.new_token())
        folder, driver = Path(spec.folder), None
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
                driver = cls(spec, process.pid)
                driver.process = process
                driver._forget = keep(process.pid)
            with contextlib.suppress(ProcessLookupError):  # it ended already
                Identity.of(process.pid).write(folder / PID)
            driver._wait_for_answer()
        except BaseException:
            (driver or cls(spec, pid=0)).kill()
            raise
        return driver

    @classmethod
    def attach(cls, folder: Path) -> "DriverProcess | None":
        """Find the driver that an earlier controller left running; clean up after one that hangs or died.

        Nothing in the folder is trusted: what is not proven to belong to this run is left alone. So is a
        driver of another version of Rheostat, which still runs the application.
        """
        try:
            spec, on_file = Spec.read(folder / SPEC), Identity.read(folder / PID)
            if Path(spec.folder).resolve() != folder.resolve():  # a copy: the driver is the original's
                return None
        except (OSError, ValueError):
            return None
        driver = cls(spec, on_file.pid, on_file)
        if driver.alive:
            try:
                driver.ask(Describe())
                return driver
            except OtherVersionError as error:
                driver.hang_up()
                raise _other_version(driver.pid, error) from None
            except RheostatError:
                pass
        driver.kill()
        return None

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        if self.process is not None:
            return self.process.poll() is None
        return self._identity is not None and self._identity.is_alive(self.spec.token)

    def ask(self, request: Request[A], timeout: float = ANSWER_SECONDS) -> A:
        """Send a request and wait for its answer; what the driver refuses is a UserError."""
        line = self._connection.ask(write_request(request), timeout)
        try:
            return read_answer(request, self._hide(line))
        except ProtocolError as error:
            self.hang_up()
            raise DriverLostError(f"the driver does not answer as it should: {error}") from None

    @property
    def has_left_reason(self) -> bool:
        """Whether the driver has written down why it ends; Spark itself may take longer to end."""
        return (Path(self.spec.folder) / FAILURE).exists()

    def failure(self) -> RheostatError:
        """Why the driver process ended, as an error to raise."""
        folder = Path(self.spec.folder)
        try:
            reason = json.loads(self._hide((folder / FAILURE).read_bytes()))
            ended, refused, message = (
                reason["ended"] is True,
                reason["refused"] is True,
                str(reason["message"]),
            )
        except (OSError, ValueError, LookupError, TypeError, RecursionError):  # none, or half of one
            return RheostatError(f"the driver process {self._end()}; its log is {folder / LOG}")
        if ended:
            return EndedError("the application ended")
        return (UserError if refused else RheostatError)(message)

    def _hide(self, line: bytes) -> bytes:
        """What the driver says ends up in the journal and on screens, where no secret belongs."""
        values = secret_values(self.spec.settings)
        if not values:
            return line
        try:
            return json.dumps(hide(json.loads(line), values)).encode()
        except (ValueError, RecursionError):  # not JSON, so nobody will read it
            return line

    def _forget_secrets(self) -> None:
        """Leave no secret in the run's folder: only a controller that attaches needs them there."""
        public = without_secrets(self.spec.settings)
        if public != self.spec.settings and (Path(self.spec.folder) / SPEC).exists():
            with contextlib.suppress(OSError):  # a full disk; nobody else can read the file
                replace(self.spec, settings=public).write()

    def _end(self) -> str:
        code = None if self.process is None else self.process.poll()
        if self.alive:
            return "does not answer"
        return f"was killed by signal {-code}" if code is not None and code < 0 else "ended"

    def stop(self, say: Callable[[str], None] = lambda _: None, limits: Limits = LIMITS) -> float:
        """End the application between two batches, then its process; returns how long ago the batch ended."""
        return time.monotonic() - end_in_order(self, limits, say)

    def begin_stop(self) -> bool:
        """Ask it to stop, without waiting for the answer; whether the request was sent."""
        self.hang_up()
        with contextlib.suppress(DriverLostError):
            self._connection.send(write_request(Stop()))
            return True
        return False

    def has_stopped(self, seconds: float) -> bool:
        """Wait up to `seconds` for the answer; whether it came, or the connection ended."""
        return self._connection.wait(seconds)

    def is_silent(self, seconds: float) -> bool:
        """Whether it answers nothing for `seconds`; one that refuses the connection is about to end."""
        connection = Connection(self.spec.socket, self.pid)
        try:
            connection.ask(write_request(Ping()), seconds)
        except DriverSilentError:
            return True
        except DriverLostError:
            return False
        finally:
            connection.hang_up()
        return False

    def kill(self) -> None:
        """End the process and everything it started, at once; what is not proven to be its own stays."""
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
        """Send SIGKILL, as the operating system does when memory runs out; tests use it."""
        os.killpg(self.pid, signal.SIGKILL)

    def _wait_for_answer(self) -> None:
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            if not self.alive:
                raise self.failure()
            with contextlib.suppress(DriverLostError):
                self.ask(Describe())
                return
            time.sleep(0.1)
        raise RheostatError(
            f"the driver did not start within {START_SECONDS:g} s; see {self.spec.folder}/{LOG}"
        )

    def hang_up(self) -> None:
        """Close the connection: whoever waits gets an error, and the next request opens a new one."""
        self._connection.hang_up()


def _other_version(pid: int, error: OtherVersionError) -> OtherVersionError:
    return OtherVersionError(
        f"the application's driver, process {pid}, was started by another version of Rheostat ({error}): "
        f"resume with that version, or stop the application with `kill {pid}` and resume again"
    )


def _environment(spec: Spec) -> dict[str, str]:
    """The driver's environment: scratch files lie beside its socket and go with it, however it ends."""
    address, scratch = spec.spark_settings().get("spark.driver.bindAddress"), str(spec.scratch)
    unpacked = f'"-Djava.io.tmpdir={scratch}"'  # libraries, which a JVM that is killed leaves behind
    return {
        "SPARK_LOCAL_DIRS": scratch,
        **os.environ,
        "SPARK_SUBMIT_OPTS": f"{unpacked} {os.environ.get('SPARK_SUBMIT_OPTS', '')}".strip(),
        **({"SPARK_LOCAL_IP": address} if address else {}),
        "PYSPARK_PYTHON": sys.executable,
        identity.VARIABLE: spec.token,
    }
