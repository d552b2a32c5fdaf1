"""Processes, control groups and folders that are cleaned up when this process ends, however it ends."""

import atexit
import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rheostat.services import cleanup_process
from rheostat.services.interrupts import uninterrupted


class Cleanup:
    """Records what to clean up: here, for an orderly exit, and in a process that outlives this one."""

    def __init__(self) -> None:
        self._entries = cleanup_process.no_entries()
        self._process = _start_process()
        atexit.register(self.close)  # in case an interrupt prevented the caller from closing it

    def add(self, kind: str, value: str) -> None:
        """Record a `session`, a `cgroup` or a `folder` to clean up."""
        self._entries[kind].append(value)
        self._send(f"{kind} {value}")

    def discard(self, kind: str, value: str) -> None:
        """Forget something that is gone already."""
        self._entries[kind].remove(value)
        self._send(f"discard {kind} {value}")

    def close(self) -> None:
        """Clean everything up in bounded time, whether the cleanup process is alive or not."""
        with uninterrupted():
            cleanup_process.clean_up(self._entries)
            self._entries = cleanup_process.no_entries()
            self._end_process()
        atexit.unregister(self.close)

    def _send(self, line: str) -> None:
        """Write a line; a cleanup process that was killed is replaced, and the new one gets every entry."""
        try:
            self._write(line)
        except BrokenPipeError:
            self._end_process()
            self._process = _start_process()
            for kind, values in self._entries.items():
                for value in values:
                    self._write(f"{kind} {value}")

    def _write(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())

    def _end_process(self) -> None:
        """Kill the cleanup process: its entries are cleaned up already, or passed to its replacement."""
        self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()


def _start_process() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, cleanup_process.__file__], stdin=subprocess.PIPE, bufsize=0, start_new_session=True
    )


@contextmanager
def sessions_ended_on_exit() -> Iterator[Callable[[int], None]]:
    """Yield a function that registers a session; it ends with the block, or with this process."""
    cleanup = Cleanup()
    try:
        yield lambda session: cleanup.add("session", str(session))
    finally:
        cleanup.close()
