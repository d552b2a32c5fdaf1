"""CPU quotas for processes, through Linux control groups version 1 or 2."""

import os
from dataclasses import dataclass
from pathlib import Path

PERIOD_MICROSECONDS = 100_000
_V1 = Path("/sys/fs/cgroup/cpu")
_V2 = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class CpuGroup:
    """A control group for processes: without a limit at first, then with a CPU quota."""

    path: Path
    version: int

    @classmethod
    def create(cls, name: str) -> "CpuGroup":
        """Create the group; OSError where that is not allowed."""
        version, root = _root()
        path = root / name
        path.mkdir()
        return cls(path, version)

    def limit(self, cores: float) -> None:
        """Limit all processes in the group together to this many cores."""
        quota = max(1000, round(cores * PERIOD_MICROSECONDS))
        if self.version == 2:
            (self.path / "cpu.max").write_text(f"{quota} {PERIOD_MICROSECONDS}")
        else:
            (self.path / "cpu.cfs_period_us").write_text(str(PERIOD_MICROSECONDS))
            (self.path / "cpu.cfs_quota_us").write_text(str(quota))

    def lift(self) -> None:
        """Remove the limit."""
        if self.version == 2:
            (self.path / "cpu.max").write_text(f"max {PERIOD_MICROSECONDS}")
        else:
            (self.path / "cpu.cfs_quota_us").write_text("-1")

    def command(self, command: list[str]) -> list[str]:
        """Wrap a command so that it and its children run in the group."""
        return ["/bin/sh", "-c", 'echo $$ > "$0" && exec "$@"', str(self.path / "cgroup.procs"), *command]


def problem() -> str | None:
    """Return why quotas cannot be set here, or None if they can."""
    try:
        probe = CpuGroup.create(f"rheostat-probe-{os.getpid()}")
        try:
            probe.limit(1.0)
        finally:
            probe.path.rmdir()
    except OSError as error:
        return f"control groups cannot be used here ({error.strerror or error}); nodes get no CPU quota"
    return None


def _root() -> tuple[int, Path]:
    if (_V2 / "cgroup.controllers").exists():
        return 2, _V2
    return 1, _V1
