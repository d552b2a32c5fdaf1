"""Processes that end with this one, however it ends."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rheostat.infrastructure import keeper


@contextmanager
def keeping() -> Iterator[Callable[[int], None]]:
    """Start a keeper; the sessions it is told of end with the block, or with this process."""
    held = subprocess.Popen(
        [sys.executable, keeper.__file__], stdin=subprocess.PIPE, text=True, start_new_session=True
    )

    def keep(session: int) -> None:
        assert held.stdin is not None
        held.stdin.write(f"session {session}\n")
        held.stdin.flush()

    try:
        yield keep
    finally:
        assert held.stdin is not None
        held.stdin.close()
        held.wait()
