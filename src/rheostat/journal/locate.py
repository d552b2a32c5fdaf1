"""Finding the journal that a user most likely means: the one that was written last."""

from pathlib import Path


def newest_journal(folder: Path) -> Path | None:
    """The journal written last among those of the runs that were started in a folder."""
    return max(folder.glob(".rheostat/*/journal.sqlite"), key=_written_at, default=None)


def _written_at(path: Path) -> float:
    """When a journal was last written: SQLite writes to the log first, which a mere reader leaves empty."""
    log = path.with_name(f"{path.name}-wal")
    log_is_used = log.exists() and log.stat().st_size > 0
    return max(file.stat().st_mtime for file in ((path, log) if log_is_used else (path,)))
