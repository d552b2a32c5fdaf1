"""A connection to a driver process: one request and one answer at a time, each a line (`protocol.py`)."""

import contextlib
import select
import socket
import struct
from collections.abc import Iterator
from typing import Any

from rheostat.engines.spark.protocol import ANSWER_SECONDS
from rheostat.model.errors import RheostatError

_CREDENTIALS = struct.Struct("3i")  # pid, user and group of the process that listens


class DriverLostError(RheostatError):
    """The driver process has gone, or does not answer as a driver does."""


class DriverSilentError(DriverLostError):
    """It accepts requests, but answers none in time."""


class Connection:
    """Opens with the first request; after a failure the next request opens a new connection."""

    def __init__(self, path: str, pid: int) -> None:
        self._path, self._pid = path, pid
        self._socket: socket.socket | None = None
        self._file: Any = None

    def ask(self, request: bytes, seconds: float = ANSWER_SECONDS) -> bytes:
        """Send a request and wait for its answer, each a line."""
        self.send(request, seconds)
        return self.receive()

    def send(self, request: bytes, seconds: float = ANSWER_SECONDS) -> None:
        """Send a request; no later step on this connection may take longer than `seconds`."""
        with self._hanging_up():
            if self._socket is None:
                self._connect(seconds)
            assert self._socket is not None
            self._socket.settimeout(seconds)
            self._file.write(request)
            self._file.flush()

    def wait(self, seconds: float) -> bool:
        """Wait up to `seconds`; whether there is an answer to receive, or the connection has ended."""
        if self._socket is None:
            return True
        return bool(select.select([self._socket], [], [], seconds)[0])

    def receive(self) -> bytes:
        """Wait for the answer; a driver that dies while it writes leaves only half of it."""
        with self._hanging_up():
            if self._socket is None:
                raise DriverLostError("the driver is gone")
            line: bytes = self._file.readline()
            if not line:
                raise DriverLostError("the driver is gone")
            if not line.endswith(b"\n"):
                raise DriverLostError("the driver is gone: its last answer is incomplete")
            return line

    def hang_up(self) -> None:
        """Close the connection; whoever is waiting for an answer gets an error."""
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
        for end in (self._file, self._socket):
            if end is not None:
                with contextlib.suppress(OSError):
                    end.close()
        self._file = self._socket = None

    def _connect(self, seconds: float) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(seconds)
        self._socket.connect(self._path)
        peer = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        if _CREDENTIALS.unpack(peer)[0] != self._pid:
            raise DriverLostError(f"process {self._pid} does not listen at {self._path}")
        self._file = self._socket.makefile("rwb")

    @contextlib.contextmanager
    def _hanging_up(self) -> Iterator[None]:
        """Hang up after any failure, an interrupt too: a late answer must not pass for the next request's."""
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
