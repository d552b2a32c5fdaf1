"""CPU and memory that processes use, from /proc."""

import contextlib
import os
from pathlib import Path

from rheostat.model.node import Usage
from rheostat.services.cleanup_process import members

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def session_usage(session: int) -> Usage:
    """Return the sum over a session's processes, ended children included."""
    cpu = memory = 0.0
    for pid in members(session):
        with contextlib.suppress(OSError):
            # After the command's name in parentheses: state, and from the 12th on the times in ticks.
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            cpu += sum(float(ticks) for ticks in fields[11:15]) / _TICKS
            memory += float(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    return Usage(cpu, memory)
