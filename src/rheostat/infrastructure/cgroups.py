"""CPU quotas for processes, through Linux control groups version 1 or 2."""

import os
from dataclasses import dataclass
from pathlib import Path

PERIOD_MICROSECONDS = 100_000
_V1 = Path("/sys/fs/cgroup/cpu")
_V2 = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class CpuGroup:
    """A control group that limits what is started in it to a number of cores."""

    path: Path

    @classmethod
    def create(cls, name: str, cores: float) -> "CpuGroup":
        """Make the group; OSError where that is not allowed."""
        version, root = _root()
        path = root / name
        path.mkdir()
        quota = max(1000, round(cores * PERIOD_MICROSECONDS))
        if version == 2:
            (path / "cpu.max").write_text(f"{quota} {PERIOD_MICROSECONDS}")
        else:
            (path / "cpu.cfs_period_us").write_text(str(PERIOD_MICROSECONDS))
            (path / "cpu.cfs_quota_us").write_text(str(quota))
        return cls(path)

    def command(self, command: list[str]) -> list[str]:
        """Wrap a command so that it starts inside the group, and its children with it."""
        return ["/bin/sh", "-c", 'echo $$ > "$0" && exec "$@"', str(self.path / "cgroup.procs"), *command]


def problem() -> str | None:
    """Why quotas cannot be set here, or None when they can."""
    try:
        probe = CpuGroup.create(f"rheostat-probe-{os.getpid()}", 1.0)
    except OSError as error:
        return f"control groups cannot be used here ({error.strerror or error}); nodes get no CPU quota"
    probe.path.rmdir()
    return None


def _root() -> tuple[int, Path]:
    if (_V2 / "cgroup.controllers").exists():
        return 2, _V2
    return 1, _V1
