"""Cleans up after a run, even when the run itself was killed. Standalone: plain Python, no imports of ours.

The parent holds this process's standard input and writes one line for each thing to clean up:
`session PID`, `folder PATH`, `cgroup PATH`, or `discard KIND VALUE`. When the pipe closes, for whatever
reason, the parent is gone, and all that is still listed is cleaned up: sessions, control groups, folders.
"""

import contextlib
import os
import shutil
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path

GRACE_SECONDS = 5.0


def members(session: int) -> list[int]:
    """Return the processes of a session: a Worker shares it with its executors and their Python workers."""
    pids = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                # After the command's name in parentheses: state, parent, group, session.
                state, _, _, owner = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
                if int(owner) == session and state != "Z":  # a zombie is gone but for its parent's wait()
                    pids.append(int(entry.name))
    return pids


def end_session(session: int, grace: float = GRACE_SECONDS) -> None:
    """Terminate the processes of a session; kill those that are left after the grace period."""
    for number, until in (
        (signal.SIGTERM, time.monotonic() + grace),
        (signal.SIGKILL, time.monotonic() + 2 * grace),
    ):
        for pid in members(session):
            with contextlib.suppress(OSError):  # it is gone, or belongs to another user
                os.kill(pid, number)
                os.kill(pid, signal.SIGCONT)  # a stopped process ends only when it continues
        while members(session) and time.monotonic() < until:
            time.sleep(0.05)


def remove_cgroup(path: Path) -> None:
    """Remove a control group, as soon as its last process is gone."""
    for _ in range(100):
        try:
            path.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.05)


def no_entries() -> dict[str, list[str]]:
    """Return an empty list for each kind."""
    return {"session": [], "cgroup": [], "folder": []}


def clean_up(entries: Mapping[str, list[str]]) -> None:
    """End or remove every entry, newest session first, each in bounded time."""
    for session in reversed(entries["session"]):
        end_session(int(session))
    for path in entries["cgroup"]:
        remove_cgroup(Path(path))
    for path in entries["folder"]:
        shutil.rmtree(path, ignore_errors=True)


def main() -> None:
    """Record what the parent sends until it is gone, then clean up."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # Ctrl-C reaches the whole terminal; this process must end last
    entries = no_entries()
    for line in sys.stdin:
        kind, _, value = line.rstrip("\n").partition(" ")
        if kind == "discard":
            kind, _, value = value.partition(" ")
            with contextlib.suppress(ValueError):
                entries[kind].remove(value)
        else:
            entries[kind].append(value)
    clean_up(entries)


if __name__ == "__main__":
    main()
