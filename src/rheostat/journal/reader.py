"""Reading a journal, also while another process writes it or after that process was killed."""

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from pydantic import TypeAdapter, ValidationError

from rheostat.control.loop import Turn
from rheostat.journal.summaries import Alert, RolledUp, Totals, TurnSummary, columns
from rheostat.journal.tables import VERSION
from rheostat.model.errors import FileError
from rheostat.model.observation import Event

TURN: TypeAdapter[Turn] = TypeAdapter(Turn)
LINES: TypeAdapter[list[TurnSummary]] = TypeAdapter(list[TurnSummary])
WINDOWS: TypeAdapter[list[RolledUp]] = TypeAdapter(list[RolledUp])
ALERTS: TypeAdapter[list[Alert]] = TypeAdapter(list[Alert])
EVENTS: TypeAdapter[list[Event]] = TypeAdapter(list[Event])
PLAIN: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])
ALL = -1  # rows
MOST = 10**9  # turns, nodes or instances
T = TypeVar("T")


class JournalReader:
    """One run's journal, to look at; a context manager."""

    def __init__(self, path: Path) -> None:
        """Open a journal that exists; nothing in it can be changed."""
        if not path.exists():
            raise FileError(f"{path}: there is no such journal")
        if path.is_dir():
            raise FileError(f"{path}: is a folder; give the journal in it")
        self.path = path
        self._connect(f"{path.absolute().as_uri()}?{'immutable=1' if _lies_still(path) else 'mode=ro'}")

    def _connect(self, address: str) -> None:
        with self._told():
            self._db = sqlite3.connect(address, uri=address.startswith("file:"))
        try:
            with self._told():
                self._prepare()
                self._check()
        except FileError:
            self._db.close()
            raise

    def _prepare(self) -> None:
        """What comes before the first look at the tables: nothing, for a reader."""

    def _check(self) -> None:
        version = self._number("PRAGMA user_version")
        if version != VERSION:
            raise FileError(
                f"{self.path}: a journal of version {version}, this Rheostat reads version {VERSION}"
            )
        self._db.execute("SELECT key, value FROM run LIMIT 0")  # another program's file may bear our version
        self._db.execute("SELECT number, turn FROM details LIMIT 0")
        self._db.execute(f"SELECT {columns(TurnSummary)} FROM turns LIMIT 0")

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Turn whatever is wrong with the file into one line that names it."""
        try:
            yield
        except sqlite3.Error as error:
            raise FileError(f"{self.path}: not a journal that can be used: {error}") from None
        except ValidationError as error:
            raise FileError(f"{self.path}: holds what is no {error.title}; was it edited?") from None
        except (UnicodeError, OverflowError) as error:
            summary = str(error).splitlines()[0]
            raise FileError(f"{self.path}: not a journal that can be used: {summary}") from None

    def facts(self) -> dict[str, Any]:
        """What `describe` noted."""
        with self._told():
            rows = self._db.execute("SELECT key, value FROM run").fetchall()
            return PLAIN.validate_python(
                {key: PLAIN.validate_json(value).get("value") for key, value in rows}
            )

    def turns(self) -> Iterator[Turn]:
        """Every turn in order that is still kept in full."""
        with self._told():
            for (text,) in self._db.execute("SELECT turn FROM details ORDER BY number"):
                yield self._read(text)

    def turn(self, number: int) -> Turn | None:
        """One turn, if it is still kept in full."""
        return self._turn("WHERE number = ?", number)

    def last(self) -> Turn | None:
        """The newest turn, which is always kept in full."""
        return self._turn("ORDER BY number DESC LIMIT 1")

    def line(self, number: int) -> TurnSummary | None:
        """One turn's line, unless it was rolled up."""
        return next(iter(self._lines("number = ?", number)), None)

    def after(self, number: int, count: int) -> list[TurnSummary]:
        """The turns that followed, as far as they were not rolled up."""
        return self._lines("number > ? AND number <= ?", number, number + count)

    def changes(self, last: int = ALL, since: float = 0.0) -> list[TurnSummary]:
        """The newest turns that changed something, failed to, or would have in a dry run; oldest first."""
        return self._lines("worth >= 2 AND status <> 'unchanged' AND at >= ?", since, last=last)

    def changed_at(self, since: float) -> tuple[float, ...]:
        """When changes were done since a time: what the guards of a resumed loop need."""
        tried = self._lines("worth >= 2 AND status IN ('applied', 'failed') AND finished_at >= ?", since)
        return tuple(found.finished_at for found in tried)

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
        """What was rolled up, oldest first."""
        query = f"SELECT {columns(RolledUp)} FROM windows ORDER BY start DESC"
        return self._checked(WINDOWS, columns(RolledUp), query)

    def totals(self, since: float = 0.0) -> Totals:
        """Sums over what ended since a time; a change whose own line was rolled up no longer counts."""
        counts = ", ".join(f"TOTAL(status = '{status}')" for status in ("applied", "failed", "dry-run"))
        sums = f"COUNT(*), {counts}, TOTAL(node_seconds), TOTAL(pause_seconds)"
        turns, applied, failed, dry, seconds, pause = self._rows(
            f"SELECT {sums} FROM turns WHERE finished_at >= ?", since
        )[0]
        rolled_up = "SELECT TOTAL(turns), TOTAL(node_seconds) FROM windows WHERE end >= ?"
        more_turns, more_seconds = self._rows(rolled_up, since)[0]
        with self._told():
            counted = (turns + int(more_turns), int(applied), int(failed), int(dry))
        return Totals(*counted, seconds + more_seconds, pause)

    def _turn(self, which: str, *values: float) -> Turn | None:
        rows = self._rows(f"SELECT turn FROM details {which}", *values)
        with self._told():
            return self._read(rows[0][0]) if rows else None

    def _read(self, text: Any) -> Turn:
        try:
            turn = TURN.validate_json(text)
        except ValidationError:
            turn = TURN.validate_json(_consistent(text))
        if not _makes_sense(turn):
            raise FileError(f"{self.path}: holds what is no Turn; was it edited?")
        return turn

    def _lines(self, where: str, *values: float, last: int = ALL) -> list[TurnSummary]:
        query = f"SELECT {columns(TurnSummary)} FROM turns WHERE {where} ORDER BY number DESC LIMIT ?"
        return self._checked(LINES, columns(TurnSummary), query, *values, last)

    def _checked(self, kind: TypeAdapter[list[T]], names: str, query: str, *values: float) -> list[T]:
        """What a query finds, newest first, as values of a kind, oldest first."""
        rows = self._rows(query, *values)
        with self._told():
            return kind.validate_python(
                [dict(zip(names.split(", "), row, strict=True)) for row in reversed(rows)]
            )

    def _rows(self, query: str, *values: float) -> list[Any]:
        with self._told():
            return self._db.execute(query, values).fetchall()

    def _number(self, query: str) -> int:
        return int(self._db.execute(query).fetchone()[0] or 0)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _consistent(text: Any) -> Any:
    """A turn of an earlier version, whose plan may name nodes that contradict its target: without them."""
    try:
        turn = json.loads(text)
        turn["plan"]["placement"] |= {"add": [], "remove": []}
        return json.dumps(turn)
    except (ValueError, LookupError, TypeError, RecursionError):
        return text


def _makes_sense(turn: Turn) -> bool:
    """Whether its times are times and its counts are counts; the types alone would let infinities pass."""
    plan, outcome = turn.plan, turn.outcome
    times = (plan.decided_at, outcome.started_at, outcome.finished_at, outcome.pause_seconds)
    counts = [turn.number]
    for one in (plan.current, plan.target, outcome.configuration):
        counts += [one.nodes, one.executors, *one.parallelism.values()]
    return all(isfinite(time) for time in times) and all(0 <= count <= MOST for count in counts)


def _lies_still(path: Path) -> bool:
    """Whether nobody writes it and we could not: on a read-only disk SQLite cannot even lock it."""
    log = path.with_name(f"{path.name}-wal")
    return not log.exists() and not os.access(path.parent, os.W_OK)
