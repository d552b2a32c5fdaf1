"""What a session's processes use: memory that forked processes share counts once."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rheostat.model.node import Usage
from rheostat.services.usage import session_usage

MEGABYTE = 2**20
FORKED = """
import os, signal
held = b"x" * (100 << 20)
for _ in range(3):
    if os.fork() == 0:
        signal.pause()
print("ready", flush=True)
signal.pause()
"""


def usage_of_forked() -> Usage:
    """That of a process with 100 MB and three children that it forked, as Spark's Python daemon does."""
    command = [sys.executable, "-c", FORKED]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as parent:
        assert parent.stdout is not None
        try:
            assert parent.stdout.readline() == "ready\n"
            return session_usage(parent.pid)
        finally:
            os.killpg(parent.pid, signal.SIGKILL)


def without(file: str) -> Callable[..., str]:
    read: Callable[..., str] = Path.read_text

    def text(path: Path, *given: Any, **more: Any) -> str:
        if path.name == file:
            raise PermissionError(path)
        return read(path, *given, **more)

    return text


def test_memory_that_forked_processes_share_counts_once() -> None:
    assert 100 * MEGABYTE < usage_of_forked().memory_bytes < 180 * MEGABYTE


def test_where_the_shares_cannot_be_read_each_process_counts_with_all_that_it_maps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Path, "read_text", without("smaps_rollup"))
    assert 400 * MEGABYTE < usage_of_forked().memory_bytes < 600 * MEGABYTE


def test_a_session_that_has_ended_uses_nothing() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""], start_new_session=True)
    ended.wait()
    assert session_usage(ended.pid) == Usage(0.0, 0.0)
