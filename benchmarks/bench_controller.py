"""What a controller costs beside the driver: CPU and memory of `rheostat run`, once everything runs."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SECONDS = 60.0
MOST_CORES, MOST_MB = 0.02, 200.0
COMMAND = ["--policy", "ds2", "--nodes", "2:2", "--node", "cores=0.7,slots=2,memory_mb=1024", "--period", "5"]


def usage(pid: int) -> tuple[float, float]:
    """CPU seconds and megabytes of one process, without its children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    cpu = (float(fields[11]) + float(fields[12])) / os.sysconf("SC_CLK_TCK")
    memory = float(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return cpu, memory / 2**20


def main() -> int:
    app = Path(__file__).parent / "apps" / "live.py"
    with tempfile.TemporaryDirectory(prefix="rheostat-bench-") as folder:
        rheostat = Path(sys.executable).with_name("rheostat")
        command = [str(rheostat), "run", *COMMAND, "--folder", f"{folder}/run", str(app), "300"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                until = time.monotonic() + 120
                while not _turns(Path(folder) / "run" / "journal.sqlite") and time.monotonic() < until:
                    time.sleep(0.5)
                before, _ = usage(process.pid)
                time.sleep(SECONDS)
                after, memory = usage(process.pid)
            finally:
                process.send_signal(signal.SIGINT)
    cores = (after - before) / SECONDS
    good = cores <= MOST_CORES and memory <= MOST_MB
    print(
        f"  {cores:.1%} of a core (bound {MOST_CORES:.0%}), {memory:.0f} MB (bound {MOST_MB:.0f}), "
        f"two nodes, a decision every 5 s, over {SECONDS:.0f} s  {'ok' if good else 'FAILED'}"
    )
    return 0 if good else 1


def _turns(journal: Path) -> bool:
    from rheostat.journal.store import Journal  # noqa: PLC0415
    from rheostat.model.errors import FileError  # noqa: PLC0415

    try:
        with Journal.read(journal) as reader:
            return reader.last() is not None
    except FileError:
        return False


if __name__ == "__main__":
    sys.exit(main())
