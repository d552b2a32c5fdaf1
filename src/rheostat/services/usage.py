"""CPU and memory that processes use, from /proc."""

import contextlib
import os
from pathlib import Path

from rheostat.model.node import Usage
from rheostat.services.cleanup_process import members

_TICKS = os.sysconf("SC_CLK_TCK")
_ANY = (("smaps_rollup", "Pss_Anon"), ("status", "RssAnon"), ("status", "VmRSS"))
# For smaps_rollup the kernel walks over every page: 10 ms of CPU for a JVM of 500 MB, 3 ms for a Python
# worker; status takes 0.03 ms. A JVM shares no page that it wrote, so both say the same of it.
_JVM = _ANY[1:]


def session_usage(session: int) -> Usage:
    """Return the sum over a session's processes, ended children included."""
    cpu = memory = 0.0
    for pid in members(session):
        with contextlib.suppress(OSError):
            # After the command's name in parentheses: state, and from the 12th on the times in ticks.
            name, _, fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
            cpu += sum(float(ticks) for ticks in fields.split()[11:15]) / _TICKS
            memory += _memory(pid, _JVM if name.endswith("(java") else _ANY)
    return Usage(cpu, memory)


def _memory(pid: int, places: tuple[tuple[str, str], ...]) -> float:
    """Bytes that cannot be dropped and read again from a file, as Vitals.java counts them.

    Python workers are forked: of a page that several of them share, each has its part.
    """
    for file, field in places:
        with contextlib.suppress(OSError):  # another user's process, or an old kernel
            for line in Path(f"/proc/{pid}/{file}").read_text().splitlines():
                if line.startswith(f"{field}:"):
                    return 1024.0 * float(line.split()[1])
    return 0.0
