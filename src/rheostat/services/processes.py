"""Tells one process from another that has its number later."""

from pathlib import Path


def started_at(pid: int) -> int:
    """When a process started, in the kernel's ticks since boot; with its pid it names one process only."""
    state, *rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    if state == "Z":  # it ended, and its parent has not looked yet
        raise ProcessLookupError(pid)
    return int(rest[18])


def has_variable(pid: int, name: str, value: str) -> bool:
    """Whether a process was started with this environment variable; its children inherit it."""
    try:
        return f"{name}={value}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False
