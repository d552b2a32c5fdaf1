"""The journal: every observation, decision and outcome in one SQLite file of bounded size."""

import json
import logging
import sqlite3
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from rheostat.control.loop import Turn
from rheostat.journal.reader import PLAIN, TURN, JournalReader
from rheostat.journal.rollup import make_room
from rheostat.journal.summaries import TurnSummary, Worth, columns, line
from rheostat.journal.tables import SCHEMA
from rheostat.model.documents import storable
from rheostat.model.errors import FileError, UserError
from rheostat.model.observation import Event

MAX_BYTES = 64 * 2**20
LEAST_BYTES = 2**20
KEPT_IN_MEMORY = 500  # turns and events while the disk takes none
# Of the bound: the data, and when the log beside it is written back; a large roll-up needs the rest to log.
DATA, LOG = 5 / 8, 1 / 16
# What may pass by itself; a damaged file does not.
PASSING = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_CANTOPEN}
_logger = logging.getLogger(__name__)


class Journal(JournalReader):
    """One run's journal, to write and to look at."""

    def __init__(self, path: Path, max_bytes: int = MAX_BYTES) -> None:
        """Create a new journal, or open an existing one of this version to go on with it."""
        if max_bytes < LEAST_BYTES:
            raise UserError(f"a journal needs at least {LEAST_BYTES} bytes, not {max_bytes}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(f"{path}: not a journal that can be used: {error}") from None
        self.path = path
        self.trouble: str | None = None  # why turns wait in memory, while they do
        self._max_bytes = max_bytes
        self._waiting: deque[Turn | Event] = deque()
        self._begun: Turn | Event | None = None  # what is being written
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

    def describe(self, facts: Mapping[str, Any]) -> None:
        """Note what the run is about: its topology, policy, load, seed."""
        rows = [(key, PLAIN.dump_json({"value": value}).decode()) for key, value in facts.items()]
        with self._told(), self._db:
            self._db.executemany("INSERT OR REPLACE INTO run VALUES (?, ?)", rows)

    def add(self, turn: Turn) -> None:
        """Record one turn; it is on disk when this returns, or in memory while `trouble` says why."""
        self._record(turn)

    def note(self, event: Event) -> None:
        """Record an event of the controller's own: started, resumed, stopped."""
        self._record(event)

    def _record(self, entry: Turn | Event) -> None:
        """Write an entry; where the disk takes none now, keep it, for the controller must outlive that."""
        if len(self._waiting) == KEPT_IN_MEMORY:
            self._waiting.popleft()
            self._lost += 1
        self._waiting.append(entry)
        try:
            self._write_waiting()
        except sqlite3.Error as error:
            if not _passes(error):
                self._waiting.clear()
                with self._told():
                    raise
            self._worry(str(error))

    def _write_waiting(self) -> None:
        """Write what waits, oldest first, each in a transaction of its own: a little room is used at once."""
        while self._waiting:
            with self._db:
                entry = self._waiting[0]
                if self._begun is not entry or not self._holds(entry):
                    self._begun = entry
                    self._write(entry)
            self._waiting.popleft()
            self._begun = None
            self._late += self.trouble is not None
            if self.trouble and not self._waiting:
                self._calm(entry.at if isinstance(entry, Event) else entry.plan.decided_at)
        make_room(self._db, self._max_bytes * DATA)

    def _holds(self, entry: Turn | Event) -> bool:
        """Whether an entry was written already: Ctrl-C may have come right after that."""
        if isinstance(entry, Event):
            return False
        return bool(self._db.execute("SELECT 1 FROM turns WHERE number = ?", (entry.number,)).fetchone())

    def _write(self, entry: Turn | Event) -> None:
        events = (entry,) if isinstance(entry, Event) else entry.observation.events
        rows = [(event.at, storable(event.kind), storable(event.text)) for event in events]
        self._db.executemany("INSERT INTO events VALUES (?, ?, ?)", rows)
        if isinstance(entry, Turn):
            summary = line(entry, self._last_applied)
            values = [storable(value) if isinstance(value, str) else value for value in summary.values]
            marks = ", ".join("?" * len(values))
            self._db.execute(f"INSERT INTO turns ({columns(TurnSummary)}) VALUES ({marks})", values)
            self._db.execute("INSERT INTO details VALUES (?, ?)", (entry.number, _text(entry)))
            if summary.worth is Worth.APPLIED:
                self._last_applied = entry.number

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
        """Write what still waits, if that is possible now, and close the file."""
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
        with suppress(*([FileError] if error else [])):  # the first error is the one to tell
            self.close()


def _passes(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF in PASSING


def _text(turn: Turn) -> str:
    """Write a turn as JSON in which an infinity stays one; strict JSON would make it null."""
    return storable(
        json.dumps(TURN.dump_python(turn, mode="json"), ensure_ascii=False, separators=(",", ":"))
    )
