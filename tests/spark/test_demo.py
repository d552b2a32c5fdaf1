"""The demo as a person sees it: in a terminal, from start to report."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

from rheostat.journal.store import Journal


def in_a_terminal(command: list[str]) -> tuple[int, str]:
    """Run a command on a terminal of its own; returns its exit code and all that it showed."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": "110", "LINES": "40", "TERM": "xterm"}
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the terminal's other end is closed
                break
            if not part:
                break
            shown += part
    os.close(ours)
    return process.returncode, re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode(errors="replace"))


def test_the_demo_shows_itself_live_and_ends_with_a_report(tmp_path: Path) -> None:
    out = tmp_path / "demo"
    rheostat = str(Path(sys.executable).with_name("rheostat"))
    code, shown = in_a_terminal([rheostat, "demo", "--duration", "30", "--out", str(out)])
    assert code == 0, shown[-2000:]
    for word in ("throughput", "lag", "score", "n1", "node-seconds", "rheostat explain"):
        assert word in shown, word
    assert (out / "demo.png").stat().st_size > 10_000
    with Journal.read(out / "journal.sqlite") as journal:
        last = journal.last()
        assert last is not None  # a start of nodes may take all the time that is left
        assert journal.facts()["application"] == "demo"
