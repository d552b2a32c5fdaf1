"""What `status` and `explain` share: finding a journal, and saying its times and measures in words."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from rheostat.cli import console
from rheostat.cli.chart import span
from rheostat.journal.summaries import TurnSummary
from rheostat.model.errors import UserError
from rheostat.model.observation import Observation, OperatorMeasures

LONGEST_SECONDS = 1e9  # of a run; beyond, a time is no date
_SIZES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def find(given: Path | None, folder: Path) -> Path:
    """The journal that was given, or the one that was written last under a folder."""
    if given is not None:
        return given
    found = list(folder.glob(".rheostat/*/journal.sqlite"))
    if not found:
        raise UserError("no journal under .rheostat here; start one with `rheostat run`, or give --journal")
    return max(found, key=_written)


def _written(path: Path) -> float:
    """When a journal was last written: SQLite writes to the log first, which a mere reader leaves empty."""
    log = path.with_name(f"{path.name}-wal")
    used = log.exists() and log.stat().st_size > 0
    return max(file.stat().st_mtime for file in ((path, log) if used else (path,)))


@dataclass(frozen=True, slots=True)
class Times:
    """Says the times of a run: by the wall clock where its start is known, else in seconds since it began."""

    started_at: float | None  # unix seconds
    now: float

    @classmethod
    def of(cls, facts: dict[str, Any], now: float) -> "Times":
        """Read the fact `started_at`, if it is a time."""
        started = facts.get("started_at")
        known = isinstance(started, int | float) and 0 <= started <= now
        return cls(started if known else None, now)

    def at(self, seconds: float) -> str:
        """Write a time; today's without the date."""
        if self.started_at is None or not abs(seconds) < LONGEST_SECONDS:
            return f"{seconds:,.0f} s"
        moment, today = datetime.fromtimestamp(self.started_at + seconds), datetime.fromtimestamp(self.now)
        same_day = moment.date() == today.date()
        return moment.strftime("%H:%M:%S" if same_day else "%Y-%m-%d %H:%M:%S")

    def age(self, seconds: float) -> float | None:
        """How long ago a time of the run was."""
        return None if self.started_at is None else self.now - self.started_at - seconds


def title(facts: dict[str, Any]) -> str:
    """Say what runs.

    >>> title({"topology": "wordcount", "policy": "ds2", "mode": "staged"})
    'wordcount with ds2 (staged)'
    >>> title({"application": "shop", "topology": "query", "policy": "ds2"})
    'shop with ds2'
    """
    what = facts.get("application") or facts.get("topology") or "an application"
    policy = f" with {facts['policy']}" if "policy" in facts else ""
    mode = f" ({facts['mode']})" if "mode" in facts else ""
    return f"{what}{policy}{mode}"


def measures(seen: Observation) -> str:
    """The application's measures in words."""
    app = seen.application
    words = [
        f"load {console.number(seen.total_load, 'rows/s')}",
        f"throughput {console.number(_whole(app.throughput), 'rows/s')}",
        f"lag {seconds(app.lag_seconds)}",
        f"backlog {console.number(app.backlog, 'rows')}",
    ]
    if app.batch_seconds is not None:
        trigger = f" of a trigger of {seconds(app.trigger_seconds)}" if app.trigger_seconds else ""
        counted = f" ({app.batches:,} in the window)" if app.batches is not None else ""
        words.append(f"a batch takes {seconds(app.batch_seconds)}{trigger}{counted}")
    if app.state_rows is not None or app.state_bytes:
        parts = [console.number(app.state_rows, "rows")] if app.state_rows is not None else []
        parts += [size(app.state_bytes)] if app.state_bytes else []
        words.append(f"state {', '.join(parts)}")
    return ", ".join(words)


def _whole(value: float | None) -> float | None:
    """A rate without the dust that sums of floating-point numbers leave."""
    return value if value is None or abs(value) > 1e-6 else 0.0


def skew(operator: OperatorMeasures) -> float | None:
    """The largest instance's rows over their mean, as measured or as its instances show it."""
    rows = [instance.processed for instance in operator.instances if instance.processed is not None]
    if operator.skew is not None or not rows or not sum(rows):
        return operator.skew
    return max(rows) * len(rows) / sum(rows)


def headline(line: TurnSummary) -> str:
    """What a turn came to, in a few words."""
    prefix = {"failed": "FAILED: ", "dry-run": "dry run: "}.get(line.status, "")
    return f"{prefix}{line.change}"


def seconds(value: float | None) -> str:
    """Write a duration.

    >>> seconds(None), seconds(0.25), seconds(75), seconds(7300)
    ('-', '0.25 s', '75 s', '2h1m')
    """
    return console.number(value, "s") if value is None or value < 120 else span(value)


def size(value: float | None) -> str:
    """Write a number of bytes.

    >>> size(20_000_000), size(12), size(None)
    ('20 MB', '12 B', '-')
    """
    if value is None:
        return "-"
    scale, unit = next(((s, u) for s, u in _SIZES if value >= s), (1.0, "B"))
    return console.number(value / scale, unit)
