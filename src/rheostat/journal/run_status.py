"""The question behind `rheostat status`: what a run is doing, and what it did last."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rheostat.control.turn import Decision
from rheostat.journal.liveness import Liveness, judge_liveness, pending_after
from rheostat.journal.reader import JournalReader
from rheostat.journal.rows import Alert, Totals, TurnSummary, summarise_pending
from rheostat.model.observation import Event

DAY_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class RunStatus:
    """A run at one moment, from its journal alone."""

    path: Path
    facts: dict[str, Any]
    liveness: Liveness
    latest: Decision | None  # the newest turn, or a decision without an outcome
    pending: TurnSummary | None  # a change without an outcome: under way, or its controller was killed
    changes: list[TurnSummary]  # the newest ones that have an outcome, oldest first
    alerts: list[Alert]
    events: list[Event]
    last_day: Totals
    whole_run: Totals


def read_status(journal: JournalReader, changes: int, now: float) -> RunStatus:
    """Read a run's status with its last changes, alerts and events, at a time in unix seconds."""
    last = journal.last()
    pending = pending_after(journal, last)
    liveness = judge_liveness(journal, now)
    return RunStatus(
        path=journal.path,
        facts=journal.facts(),
        liveness=liveness,
        latest=pending or last,
        pending=summarise_pending(pending) if pending else None,
        changes=journal.changes(changes),
        alerts=journal.alerts(changes),
        events=journal.events(last=changes),
        last_day=journal.totals(liveness.ended_at - DAY_SECONDS),
        whole_run=journal.totals(),
    )
