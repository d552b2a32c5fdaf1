"""What `status` and `explain` share: which journal to open, and its times and measures in words."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from rheostat.cli import console
from rheostat.cli.chart import span
from rheostat.control.loop import NOT_FINISHED
from rheostat.journal.liveness import Liveness, State, started_at
from rheostat.journal.locate import newest_journal
from rheostat.journal.rows import TurnSummary
from rheostat.model.errors import UserError
from rheostat.model.observation import ApplicationMeasures, Observation
from rheostat.run.folder import JOURNAL

LONGEST_SECONDS = 1e9  # of a run; a longer time cannot be shown as a date
_PREFIXES = {
    "failed": "FAILED: ",
    "interrupted": "INTERRUPTED: ",
    "pending": "UNFINISHED: ",
    "dry-run": "dry run: ",
}
_SIZES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def find_journal(given: Path | None, folder: Path) -> Path:
    """Return the given journal, or that of a given run's folder, or the one written last under a folder."""
    path = given or newest_journal(folder)
    if path is not None and (path / JOURNAL).exists():
        return path / JOURNAL
    if path is None:
        raise UserError("no journal under .rheostat here; start one with `rheostat run`, or give --journal")
    return path


@dataclass(frozen=True, slots=True)
class Times:
    """Writes the times of a run: as time of day if its start is known, else as seconds since the start."""

    started_at: float | None  # unix seconds
    now: float

    @classmethod
    def of(cls, facts: dict[str, Any], now: float) -> "Times":
        """Take the start of the run from its facts."""
        return cls(started_at(facts, now), now)

    def at(self, seconds: float) -> str:
        """Write a time; today's without the date."""
        if self.started_at is None or not abs(seconds) < LONGEST_SECONDS:
            return f"{seconds:,.0f} s"
        moment, today = datetime.fromtimestamp(self.started_at + seconds), datetime.fromtimestamp(self.now)
        same_day = moment.date() == today.date()
        return moment.strftime("%H:%M:%S" if same_day else "%Y-%m-%d %H:%M:%S")


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


def measures(app: ApplicationMeasures) -> str:
    """Write the measures of an application, or of one of its queries, in one sentence."""
    words = [
        f"load {console.number(app.total_load, 'rows/s')}",
        f"throughput {console.number(_rounded(app.throughput), 'rows/s')}",
        f"lag {duration(app.lag_seconds)}",
        f"backlog {console.number(app.backlog, 'rows')}",
        *_batch(app),
    ]
    if app.state_rows is not None or app.state_bytes:
        parts = [console.number(app.state_rows, "rows")] if app.state_rows is not None else []
        parts += [size(app.state_bytes)] if app.state_bytes else []
        words.append(f"state {', '.join(parts)}")
    return ", ".join(words)


def query_measures(observation: Observation) -> list[str]:
    """Write a sentence for each query of several, which share the nodes."""
    return [f"query {name}: {measures(query)}" for name, query in observation.queries.items()]


def _batch(app: ApplicationMeasures) -> list[str]:
    """The batches that ended, and the one that runs, if it is late already."""
    trigger = f" of a trigger of {duration(app.trigger_seconds)}" if app.trigger_seconds else ""
    words = []
    if app.batch_seconds is not None:
        count = f" ({app.batches:,} in the window)" if app.batches is not None else ""
        words.append(f"a batch takes {duration(app.batch_seconds)}{trigger}{count}")
    running, done, left = app.running_seconds, app.tasks_done, app.tasks_left
    if running is not None and app.trigger_seconds and running > app.trigger_seconds:
        tasks = (
            f" with {done:,} of {done + left:,} tasks done" if done is not None and left is not None else ""
        )
        words.append(f"the running batch has taken {duration(running)}{trigger}{tasks}")
    return words


def _rounded(value: float | None) -> float | None:
    """A rate without the tiny remainders of floating-point sums."""
    return value if value is None or abs(value) > 1e-6 else 0.0


def change_text(turn: TurnSummary) -> str:
    """Write what a turn changed, or was to change."""
    return f"{_PREFIXES.get(turn.status, '')}{turn.change}"


def without_outcome(controller: Liveness) -> str:
    """Say what is known of a change that has no outcome."""
    if controller.state is State.RUNNING:
        return "this change is under way"
    if controller.state is State.SILENT:
        return "this change has no outcome yet; the controller may have stopped"
    return NOT_FINISHED


def duration(seconds: float | None) -> str:
    """Write a duration.

    >>> duration(None), duration(0.25), duration(75), duration(7300)
    ('-', '0.25 s', '75 s', '2h1m')
    """
    return console.number(seconds, "s") if seconds is None or seconds < 120 else span(seconds)


def size(value: float | None) -> str:
    """Write a number of bytes.

    >>> size(20_000_000), size(12), size(None)
    ('20 MB', '12 B', '-')
    """
    if value is None:
        return "-"
    scale, unit = next(((s, u) for s, u in _SIZES if value >= s), (1.0, "B"))
    return console.number(value / scale, unit)
