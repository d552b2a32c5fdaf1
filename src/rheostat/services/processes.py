"""Distinguishes a process from a later one with the same pid."""

from pathlib import Path


def started_at(pid: int) -> int:
    """Return when a process started, in ticks since boot; together with its pid this is unique."""
    state, *rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    if state == "Z":  # it has ended, and its parent has not waited for it yet
        raise ProcessLookupError(pid)
    return int(rest[18])


def has_variable(pid: int, name: str, value: str) -> bool:
    """Return whether a process has this environment variable; its children inherit it."""
    try:
        return f"{name}={value}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False
