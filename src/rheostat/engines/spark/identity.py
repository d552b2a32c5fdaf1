"""Proves that a process and a scratch folder belong to a certain driver.

The files in a run's folder may be old, copied or forged. So every driver gets a random token, in its
environment, which only its user can read, and in a file of its scratch folder. Only a process that was
started with the token is ended, and only a folder that holds the token is removed.
"""

import contextlib
import os
import secrets
import shutil
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from rheostat.model.secrets import write_private
from rheostat.services import cleanup_process
from rheostat.services.processes import has_variable, started_at

VARIABLE = "RHEOSTAT_DRIVER_TOKEN"
TOKEN = "rheostat.token"
_PREFIX = "rheostat-"


def new_token() -> str:
    """A token that cannot be guessed."""
    return secrets.token_hex(16)


def make_folder(scratch: Path | None = None) -> Path:
    """A folder for a driver's socket and scratch files; a user's own path may be too long for a socket."""
    return Path(tempfile.mkdtemp(prefix=_PREFIX, dir=scratch))


def mark_folder(folder: Path, token: str) -> None:
    """Leave the token in the folder."""
    write_private(folder / TOKEN, token.encode())


def remove_folder(folder: Path, token: str) -> None:
    """Remove a folder that was made for the driver with this token, and no other."""
    if not _holds(folder, token):
        return
    with contextlib.suppress(OSError):
        for path in folder.iterdir():  # the token goes last, so that an interrupted removal can be repeated
            if path.name != TOKEN:
                shutil.rmtree(path, ignore_errors=True)
                path.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def _holds(folder: Path, token: str) -> bool:
    try:
        status = folder.lstat()
        private = not status.st_mode & 0o077 and status.st_uid == os.getuid()
        return (
            bool(token)
            and stat.S_ISDIR(status.st_mode)
            and private
            and folder.name.startswith(_PREFIX)
            and (folder / TOKEN).read_bytes() == token.encode()
        )
    except (OSError, ValueError):  # a forged path may hold a NUL
        return False


@dataclass(frozen=True)
class Identity:
    """A driver process, and when it started: by now another process may have its number."""

    pid: int
    started: int  # ticks since boot

    @classmethod
    def of(cls, pid: int) -> "Identity":
        """The identity of a running process."""
        return cls(pid, started_at(pid))

    @classmethod
    def read(cls, path: Path) -> "Identity":
        """Read what `write` wrote; OSError or ValueError."""
        pid, started = path.read_text().split()
        return cls(int(pid), int(started))

    def write(self, path: Path) -> None:
        """Write it at once: half a number would name another process."""
        new = path.with_suffix(".new")
        new.write_text(f"{self.pid} {self.started}\n")
        new.replace(path)

    def is_alive(self, token: str) -> bool:
        """Whether this very process runs, and was started with the token."""
        try:
            return started_at(self.pid) == self.started and _has_token(self.pid, token)
        except (OSError, ValueError):
            return False


def end_session(session: int, token: str) -> None:
    """End the processes of a session, if it belongs to the driver with this token."""
    if any(_has_token(pid, token) for pid in cleanup_process.members(session)):
        cleanup_process.end_session(session)


def _has_token(pid: int, token: str) -> bool:
    return bool(token) and has_variable(pid, VARIABLE, token)
