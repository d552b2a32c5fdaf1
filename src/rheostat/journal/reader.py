"""Reading a journal, also while another process writes it or after that process was killed."""

import json
from collections.abc import Iterator
from math import isfinite
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from rheostat.control.turn import Decision, Turn
from rheostat.journal.file import JournalFile
from rheostat.journal.rows import Alert, RolledUp, Totals, TurnSummary, columns
from rheostat.journal.tables import VERSION
from rheostat.model.decision import TRIED, Status
from rheostat.model.observation import Event

TURN: TypeAdapter[Turn] = TypeAdapter(Turn)
DECISION: TypeAdapter[Decision] = TypeAdapter(Decision)
SUMMARIES: TypeAdapter[list[TurnSummary]] = TypeAdapter(list[TurnSummary])
WINDOWS: TypeAdapter[list[RolledUp]] = TypeAdapter(list[RolledUp])
ALERTS: TypeAdapter[list[Alert]] = TypeAdapter(list[Alert])
EVENTS: TypeAdapter[list[Event]] = TypeAdapter(list[Event])
PLAIN: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])
COUNTS = {"applied": Status.APPLIED, "failed": Status.FAILED, "dry_run": Status.DRY_RUN,
          "interrupted": Status.INTERRUPTED}  # fmt: skip
ALL = -1  # rows
MOST = 10**9  # turns, nodes or instances
T = TypeVar("T")
D = TypeVar("D", bound=Decision)


class JournalReader(JournalFile):
    """What can be read of one run's journal."""

    def facts(self) -> dict[str, Any]:
        """The facts about the run that `describe` wrote."""
        with self._errors_named():
            rows = self._db.execute("SELECT key, value FROM run").fetchall()
            return PLAIN.validate_python(
                {key: PLAIN.validate_json(value).get("value") for key, value in rows}
            )

    def turns(self) -> Iterator[Turn]:
        """Every turn in order that is still kept in full."""
        with self._errors_named():
            for (text,) in self._db.execute("SELECT turn FROM details ORDER BY number"):
                yield self._read(text)

    def turn(self, number: int) -> Turn | None:
        """One turn, if it is still kept in full."""
        return self._turn("WHERE number = ?", number)

    def last(self) -> Turn | None:
        """The newest turn, which is always kept in full."""
        return self._turn("ORDER BY number DESC LIMIT 1")

    def newest(self, count: int) -> list[Turn]:
        """The newest turns that are kept in full, oldest first."""
        rows = self._rows("SELECT turn FROM details ORDER BY number DESC LIMIT ?", count)
        with self._errors_named():
            return [self._read(text) for (text,) in reversed(rows)]

    def pending(self) -> Decision | None:
        """The decision without an outcome: its change is under way, or its controller was killed."""
        if self._version != VERSION:
            return None
        rows = self._rows("SELECT decision FROM pending ORDER BY number DESC LIMIT 1")
        with self._errors_named():
            return self._valid(DECISION.validate_json(rows[0][0])) if rows else None

    def summary(self, number: int) -> TurnSummary | None:
        """One turn's summary, unless the turn was rolled up."""
        return next(iter(self._summaries("number = ?", number)), None)

    def following(self, number: int, count: int) -> list[TurnSummary]:
        """The turns after this one, except those that were rolled up."""
        return self._summaries("number > ? AND number <= ?", number, number + count)

    def changes(self, last: int = ALL, since: float = 0.0) -> list[TurnSummary]:
        """The newest turns that changed something, failed to, or would have in a dry run; oldest first."""
        return self._summaries("worth >= 2 AND status <> 'unchanged' AND at >= ?", since, last=last)

    def changed_at(self, since: float) -> tuple[float, ...]:
        """When changes were tried since a time: what the guards of a resumed loop need."""
        statuses = ", ".join(f"'{status}'" for status in TRIED)
        tried = self._summaries(f"worth >= 2 AND status IN ({statuses}) AND finished_at >= ?", since)
        return tuple(summary.finished_at for summary in tried)

    def alerts(self, last: int = ALL) -> list[Alert]:
        """The alerts raised most recently, each text once; oldest first."""
        query = (
            "SELECT alert, COUNT(*), MIN(at), MAX(at) FROM turns WHERE worth >= 2 AND alert IS NOT NULL "
            "GROUP BY alert ORDER BY MAX(at) DESC LIMIT ?"
        )
        return self._checked(ALERTS, "text, times, first_at, last_at", query, last)

    def events(self, since: float = float("-inf"), last: int = ALL) -> list[Event]:
        """The newest events since a time, oldest first."""
        query = "SELECT at, kind, text FROM events WHERE at >= ? ORDER BY at DESC, rowid DESC LIMIT ?"
        return self._checked(EVENTS, "at, kind, text", query, since, last)

    def windows(self) -> list[RolledUp]:
        """The turns that were rolled up, oldest first."""
        query = f"SELECT {self._columns(RolledUp)} FROM windows ORDER BY start DESC"
        return self._checked(WINDOWS, columns(RolledUp), query)

    def totals(self, since: float = 0.0) -> Totals:
        """Sums over the turns that ended since a time; a change that was rolled up is no longer counted."""
        counts = ", ".join(f"TOTAL(status = '{status}')" for status in COUNTS.values())
        costs = "TOTAL(node_seconds), " + ("TOTAL(money)" if self._version == VERSION else "0.0")
        sums = f"COUNT(*), {costs}, TOTAL(pause_seconds), {counts}"
        turns, seconds, money, pause, *attempts = self._rows(
            f"SELECT {sums} FROM turns WHERE finished_at >= ?", since
        )[0]
        rolled_up = f"SELECT TOTAL(turns), {costs} FROM windows WHERE end >= ?"
        more_turns, more_seconds, more_money = self._rows(rolled_up, since)[0]
        with self._errors_named():
            turns += int(more_turns)
            counted = dict(zip(COUNTS, map(int, attempts), strict=True))
        spent = {"node_seconds": seconds + more_seconds, "money": money + more_money}
        return Totals(turns, **spent, pause_seconds=pause, **counted)

    def _turn(self, condition: str, *values: float) -> Turn | None:
        rows = self._rows(f"SELECT turn FROM details {condition}", *values)
        with self._errors_named():
            return self._read(rows[0][0]) if rows else None

    def _read(self, text: Any) -> Turn:
        try:
            turn = TURN.validate_json(text)
        except ValidationError:
            turn = TURN.validate_json(_without_contradiction(text))
        return self._valid(turn)

    def _valid(self, decision: D) -> D:
        if not _is_plausible(decision):
            raise self._invalid(type(decision).__name__)
        return decision

    def _summaries(self, where: str, *values: float, last: int = ALL) -> list[TurnSummary]:
        query = f"SELECT {self._columns(TurnSummary)} FROM turns WHERE {where} ORDER BY number DESC LIMIT ?"
        return self._checked(SUMMARIES, columns(TurnSummary), query, *values, last)

    def _checked(self, kind: TypeAdapter[list[T]], names: str, query: str, *values: float) -> list[T]:
        """The rows of a query, which gives the newest first, as values of a kind, oldest first."""
        rows = self._rows(query, *values)
        with self._errors_named():
            return kind.validate_python(
                [dict(zip(names.split(", "), row, strict=True)) for row in reversed(rows)]
            )


def _without_contradiction(text: Any) -> Any:
    """Drop the nodes that a plan of an early version names in contradiction to its target."""
    try:
        turn = json.loads(text)
        turn["plan"]["placement"] |= {"add": [], "remove": []}
        return json.dumps(turn)
    except (ValueError, LookupError, TypeError, RecursionError):
        return text


def _is_plausible(decision: Decision) -> bool:
    """Whether its times are times and its counts are counts; the types alone would let infinities pass."""
    plan = decision.plan
    times, configurations = [plan.decided_at], [plan.current, plan.target]
    if isinstance(decision, Turn):
        outcome = decision.outcome
        times += [outcome.started_at, outcome.finished_at, outcome.pause_seconds]
        configurations.append(outcome.configuration)
    counts = [decision.number]
    for configuration in configurations:
        counts += [configuration.nodes, configuration.executors, *configuration.parallelism.values()]
    return all(isfinite(time) for time in times) and all(0 <= count <= MOST for count in counts)
