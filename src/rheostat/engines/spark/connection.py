"""A connection to a driver process: one request and one answer at a time, each a line of JSON."""

import contextlib
import json
import select
import socket
import struct
from collections.abc import Iterator
from typing import Any

from rheostat.model.errors import RheostatError

ANSWER_SECONDS = 60.0
_CREDENTIALS = struct.Struct("3i")  # pid, user and group of the process that listens


class DriverLostError(RheostatError):
    """The driver process is gone or does not answer."""


class DriverSilentError(DriverLostError):
    """It takes requests, and answers none in time."""


class Connection:
    """Opens with the first request; after a failure the next request opens another connection."""

    def __init__(self, path: str, pid: int) -> None:
        self._path, self._pid = path, pid
        self._socket: socket.socket | None = None
        self._file: Any = None

    def ask(self, request: dict[str, Any], seconds: float = ANSWER_SECONDS) -> dict[str, Any]:
        """Send a request and wait for its answer."""
        self.send(request, seconds)
        return self.receive()

    def send(self, request: dict[str, Any], seconds: float = ANSWER_SECONDS) -> None:
        """Send a request; nothing later on this connection takes longer than these seconds."""
        with self._hanging_up():
            if self._socket is None:
                self._connect(seconds)
            assert self._socket is not None
            self._socket.settimeout(seconds)
            self._file.write(json.dumps(request).encode() + b"\n")
            self._file.flush()

    def wait(self, seconds: float) -> bool:
        """Wait so long; whether there is an answer to receive, or the connection ended."""
        if self._socket is None:
            return True
        return bool(select.select([self._socket], [], [], seconds)[0])

    def receive(self) -> dict[str, Any]:
        """Wait for the answer; a driver that dies while it writes leaves half of one."""
        with self._hanging_up():
            if self._socket is None:
                raise DriverLostError("the driver is gone")
            line: bytes = self._file.readline()
            if not line:
                raise DriverLostError("the driver is gone")
            if not line.endswith(b"\n"):
                raise DriverLostError("the driver is gone: its last answer is incomplete")
            return _read(line)

    def hang_up(self) -> None:
        """Close the connection; whoever waits for an answer gets none."""
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
        for thing in (self._file, self._socket):
            if thing is not None:
                with contextlib.suppress(OSError):
                    thing.close()
        self._file = self._socket = None

    def _connect(self, seconds: float) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(seconds)
        self._socket.connect(self._path)
        told = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        if _CREDENTIALS.unpack(told)[0] != self._pid:
            raise DriverLostError(f"process {self._pid} does not listen at {self._path}")
        self._file = self._socket.makefile("rwb")

    @contextlib.contextmanager
    def _hanging_up(self) -> Iterator[None]:
        """Hang up on every failure: after an interrupt, too, this answer is not the next request's."""
        try:
            yield
        except TimeoutError as error:
            self.hang_up()
            raise DriverSilentError(f"the driver does not answer: {error}") from None
        except OSError as error:
            self.hang_up()
            raise DriverLostError(f"the driver does not answer: {error}") from None
        except BaseException:
            self.hang_up()
            raise


def _read(line: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(line)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict) or not ("ok" in answer or isinstance(answer.get("error"), str)):
        raise DriverLostError("the driver does not answer: what it sent is no answer")
    return answer
