"""The journal: every observation, decision and outcome in one SQLite file of bounded size."""

import json
import logging
import sqlite3
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from pydantic import TypeAdapter

from rheostat.control.turn import Decision, Turn
from rheostat.journal.reader import DECISION, PLAIN, TURN, D, JournalReader
from rheostat.journal.rollup import make_room
from rheostat.journal.rows import TurnSummary, Worth, columns, summarise
from rheostat.journal.tables import MONEY, PENDING, SCHEMA, VERSION
from rheostat.model.documents import storable
from rheostat.model.errors import FileError, UserError
from rheostat.model.observation import Event

MAX_BYTES = 64 * 2**20
LEAST_BYTES = 2**20
Entry = Decision | Turn | Event
KEPT_IN_MEMORY = 500  # entries, while the disk is full
# Parts of the bound: the data, and the log before it is written back; a large roll-up logs the rest.
DATA, LOG = 5 / 8, 1 / 16
# Trouble that may pass by itself; that of a damaged file does not.
PASSING = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_CANTOPEN}
_logger = logging.getLogger(__name__)


class Journal(JournalReader):
    """One run's journal, to write and to read; the Recorder of a loop."""

    def __init__(self, path: Path, max_bytes: int = MAX_BYTES) -> None:
        """Create a new journal, or open an existing one to continue it."""
        if max_bytes < LEAST_BYTES:
            raise UserError(f"a journal needs at least {LEAST_BYTES} bytes, not {max_bytes}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(f"{path}: not a journal that can be used: {error}") from None
        self.path = path
        self.trouble: str | None = None  # why turns wait in memory, while they do
        self._max_bytes = max_bytes
        self._waiting: deque[Entry] = deque()
        self._writing: Entry | None = None
        self._late = self._lost = 0
        self._connect(str(path))
        applied = f"SELECT MAX(number) FROM turns WHERE worth = {Worth.APPLIED:d}"
        self._last_applied = self._number(applied) or None

    @staticmethod
    def read(path: Path) -> JournalReader:
        """Open a journal that another process may be writing; nothing in it can be changed."""
        return JournalReader(path)

    def _prepare(self) -> None:
        """Make the tables of a new file; bound the log that SQLite keeps beside it."""
        if not self._number("SELECT COUNT(*) FROM sqlite_master") and not self._number("PRAGMA user_version"):
            self._db.execute("PRAGMA auto_vacuum = INCREMENTAL")
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.executescript(SCHEMA)
        log_bytes = int(self._max_bytes * LOG)
        self._db.execute("PRAGMA secure_delete = OFF")  # else whatever is freed is written once more
        self._db.execute(f"PRAGMA wal_autocheckpoint = {log_bytes // self._number('PRAGMA page_size')}")
        self._db.execute(f"PRAGMA journal_size_limit = {log_bytes}")

    def _upgrade(self) -> None:
        """Give a journal of version 2 what it lacks: all of it or, where the disk is full, nothing."""
        if self._version != VERSION:
            with self._db:
                self._db.execute("BEGIN IMMEDIATE")
                for statement in (PENDING, *MONEY):
                    self._db.execute(statement)
                self._db.execute(f"PRAGMA user_version = {VERSION}")
            self._version = VERSION

    def describe(self, facts: Mapping[str, Any]) -> None:
        """Write facts about the run: its topology, policy, load, seed."""
        rows = [(key, PLAIN.dump_json({"value": value}).decode()) for key, value in facts.items()]
        with self._errors_named(), self._db:
            self._db.executemany("INSERT OR REPLACE INTO run VALUES (?, ?)", rows)

    def decided(self, decision: Decision) -> None:
        """Record a decision before it is applied; it is on disk on return, unless there is `trouble`."""
        self._record(decision)

    def done(self, turn: Turn) -> None:
        """Record a turn, in place of its decision; it is on disk on return, unless there is `trouble`."""
        if self._waiting and _is_decision_of(self._waiting[-1], turn):
            self._waiting.pop()
        self._record(turn)

    def note(self, event: Event) -> None:
        """Record an event of the controller's own: started, resumed, stopped."""
        self._record(event)

    def _record(self, entry: Entry) -> None:
        """Write an entry; keep it in memory while the disk is full, for the controller must outlive that."""
        if len(self._waiting) == KEPT_IN_MEMORY:
            self._waiting.popleft()
            self._lost += 1
        self._waiting.append(entry)
        try:
            self._write_waiting()
        except sqlite3.Error as error:
            if not _passes(error):
                self._waiting.clear()
                with self._errors_named():
                    raise
            self._worry(str(error))

    def _write_waiting(self) -> None:
        """Write the waiting entries, oldest first, each in its own transaction, so that any room is used."""
        while self._waiting:
            with self._db:
                entry = self._waiting[0]
                if self._writing is not entry or not self._holds(entry):
                    self._writing = entry
                    self._write(entry)
            self._waiting.popleft()
            self._writing = None
            self._late += self.trouble is not None
            if self.trouble and not self._waiting:
                self._calm(entry.at if isinstance(entry, Event) else entry.plan.decided_at)
        make_room(self._db, self._max_bytes * DATA)

    def _holds(self, entry: Entry) -> bool:
        """Whether a turn was written already: Ctrl-C may have come right after that."""
        if not isinstance(entry, Turn):
            return False
        return bool(self._db.execute("SELECT 1 FROM turns WHERE number = ?", (entry.number,)).fetchone())

    def _write(self, entry: Entry) -> None:
        if isinstance(entry, Event):
            self._write_events((entry,))
        elif isinstance(entry, Turn):
            self._write_turn(entry)
        else:
            self._db.execute("DELETE FROM pending")
            self._db.execute("INSERT INTO pending VALUES (?, ?)", (entry.number, _json(DECISION, entry)))

    def _write_events(self, events: Iterable[Event]) -> None:
        rows = [(event.at, storable(event.kind), storable(event.text)) for event in events]
        self._db.executemany("INSERT INTO events VALUES (?, ?, ?)", rows)

    def _write_turn(self, turn: Turn) -> None:
        self._write_events(turn.observation.events)
        summary = summarise(turn, self._last_applied)
        values = [storable(value) if isinstance(value, str) else value for value in summary.values]
        marks = ", ".join("?" * len(values))
        self._db.execute(f"INSERT INTO turns ({columns(TurnSummary)}) VALUES ({marks})", values)
        self._db.execute("INSERT INTO details VALUES (?, ?)", (turn.number, _json(TURN, turn)))
        self._db.execute("DELETE FROM pending")
        if summary.worth is Worth.APPLIED:
            self._last_applied = turn.number

    def _worry(self, trouble: str) -> None:
        if self.trouble is None:
            _logger.warning("%s: cannot be written: %s; turns are kept in memory", self.path, trouble)
        self.trouble = trouble

    def _calm(self, now: float) -> None:
        """Say in the journal itself that some of it was written late or is lost."""
        text = f"could not be written: {self.trouble}; {self._late} written late, {self._lost} lost"
        self.trouble, self._late, self._lost = None, 0, 0
        self._waiting.append(Event(now, "journal", text))

    def close(self) -> None:
        """Write the waiting entries, if that is possible now, and close the file."""
        try:
            with suppress(sqlite3.Error):
                self._write_waiting()
            if self._waiting:
                left = len(self._waiting)
                raise FileError(f"{self.path}: cannot be written: {self.trouble}; {left} entries are lost")
        finally:
            self._waiting.clear()
            self._db.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(*([FileError] if error else [])):  # the first error is the one to report
            self.close()


def _passes(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF in PASSING


def _is_decision_of(entry: Entry, turn: Turn) -> bool:
    return isinstance(entry, Decision) and not isinstance(entry, Turn) and entry.number == turn.number


def _json(kind: TypeAdapter[D], value: D) -> str:
    """Write JSON in which an infinity stays one; strict JSON would make it null."""
    plain = kind.dump_python(value, mode="json")
    return storable(json.dumps(plain, ensure_ascii=False, separators=(",", ":")))
