"""Ends what a run started, even when the run itself was killed. Stands alone: plain Python, none of ours.

The parent holds this process's standard input and writes one line for each thing to clean up:
`session PID`, `folder PATH`, `cgroup PATH`, or `forget KIND VALUE`. When the pipe closes, for whatever
reason, the parent is gone: everything still noted is ended, sessions, then control groups, then folders.
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
    """Every process of a session: a Worker's executors and their Python workers share its session."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                # After the command's name in parentheses: state, parent, group, session.
                state, _, _, owner = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
                if int(owner) == session and state != "Z":  # a zombie is gone but for its parent's wait()
                    found.append(int(entry.name))
    return found


def end_session(session: int, grace: float = GRACE_SECONDS) -> None:
    """Ask all its processes to end; those that did not after a while are killed."""
    for number, until in (
        (signal.SIGTERM, time.monotonic() + grace),
        (signal.SIGKILL, time.monotonic() + 2 * grace),
    ):
        for pid in members(session):
            with contextlib.suppress(OSError):  # it is gone, or runs as somebody else
                os.kill(pid, number)
                os.kill(pid, signal.SIGCONT)  # one that was stopped ends when it goes on
        while members(session) and time.monotonic() < until:
            time.sleep(0.05)


def remove_cgroup(path: Path) -> None:
    """A control group can be removed once its last process is gone."""
    for _ in range(100):
        try:
            path.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.05)


def nothing() -> dict[str, list[str]]:
    """What is kept at first, by kind."""
    return {"session": [], "cgroup": [], "folder": []}


def clean_up(kept: Mapping[str, list[str]]) -> None:
    """End and remove all of it, the newest first; each takes a bounded time."""
    for session in reversed(kept["session"]):
        end_session(int(session))
    for path in kept["cgroup"]:
        remove_cgroup(Path(path))
    for path in kept["folder"]:
        shutil.rmtree(path, ignore_errors=True)


def main() -> None:
    """Note what the parent says until it is gone, then clean up."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # Ctrl-C reaches the whole terminal; this process goes last
    kept = nothing()
    for line in sys.stdin:
        kind, _, value = line.rstrip("\n").partition(" ")
        if kind == "forget":
            kind, _, value = value.partition(" ")
            with contextlib.suppress(ValueError):
                kept[kind].remove(value)
        else:
            kept[kind].append(value)
    clean_up(kept)


if __name__ == "__main__":
    main()
