"""Processes, control groups and folders that end with this process, however it ends."""

import atexit
import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rheostat.infrastructure import keeper
from rheostat.infrastructure.interrupts import uninterrupted


class Keeper:
    """Notes what must end: here, for an end in order, and with a process that outlives this one."""

    def __init__(self) -> None:
        self._kept = keeper.nothing()
        self._process = _started()
        atexit.register(self.close)  # where an interrupt kept somebody from calling it

    def keep(self, kind: str, value: str) -> None:
        """End this, too: a `session`, a `cgroup` or a `folder`."""
        self._kept[kind].append(value)
        self._tell(f"{kind} {value}")

    def forget(self, kind: str, value: str) -> None:
        """It has ended already."""
        self._kept[kind].remove(value)
        self._tell(f"forget {kind} {value}")

    def close(self) -> None:
        """End everything in bounded time, whether the keeper process lives or not."""
        with uninterrupted():
            keeper.clean_up(self._kept)
            self._kept = keeper.nothing()
            self._end_process()
        atexit.unregister(self.close)

    def _tell(self, line: str) -> None:
        """Write a line; a keeper process that was killed is replaced, and its successor told everything."""
        try:
            self._write(line)
        except BrokenPipeError:
            self._end_process()
            self._process = _started()
            for kind, values in self._kept.items():
                for value in values:
                    self._write(f"{kind} {value}")

    def _write(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())

    def _end_process(self) -> None:
        """Kill it: what it would end is ended, or is its successor's."""
        self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()


def _started() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, keeper.__file__], stdin=subprocess.PIPE, bufsize=0, start_new_session=True
    )


@contextmanager
def keeping() -> Iterator[Callable[[int], None]]:
    """Start a keeper; the sessions it is told of end with the block, or with this process."""
    held = Keeper()
    try:
        yield lambda session: held.keep("session", str(session))
    finally:
        held.close()
