"""The journal: every observation, decision and outcome in one SQLite file, readable by anything."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from rheostat.control.loop import Turn
from rheostat.model.errors import FileError

VERSION = 1
_TURN: TypeAdapter[Turn] = TypeAdapter(Turn)
_PLAIN: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])
_SCHEMA = f"""
BEGIN;
PRAGMA user_version = {VERSION};
CREATE TABLE run (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE turns (
    number INTEGER PRIMARY KEY,
    at REAL NOT NULL,        -- seconds since the run began
    status TEXT NOT NULL,    -- applied, unchanged, failed
    reason TEXT NOT NULL,
    change TEXT NOT NULL,    -- what changed, in words
    alert TEXT,
    turn TEXT NOT NULL       -- everything, as JSON
);
COMMIT;
"""


class Journal:
    """One run's journal; a context manager."""

    def __init__(self, path: Path) -> None:
        """Create a new journal, or open an existing one of this version."""
        self.path = path
        try:
            new = not path.exists() or path.stat().st_size == 0
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path)
        except (sqlite3.Error, OSError) as error:
            raise FileError(f"{path}: not a journal that can be used: {error}") from None
        try:
            with self._told():
                self._open(new)
        except FileError:
            self._db.close()
            raise

    def _open(self, new: bool) -> None:
        if new:
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.executescript(_SCHEMA)
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version != VERSION:
            raise FileError(
                f"{self.path}: a journal of version {version}, this Rheostat reads version {VERSION}"
            )
        self._db.execute("SELECT key, value FROM run LIMIT 0")  # another program's file may bear our version
        self._db.execute("SELECT number, turn FROM turns LIMIT 0")

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Turn whatever is wrong with the file into one line that names it."""
        try:
            yield
        except sqlite3.Error as error:
            raise FileError(f"{self.path}: not a journal that can be used: {error}") from None
        except ValidationError as error:
            raise FileError(f"{self.path}: holds what is no {error.title}; was it edited?") from None

    def describe(self, facts: Mapping[str, Any]) -> None:
        """Note what the run is about: its topology, policy, load, seed."""
        rows = [(key, _PLAIN.dump_json({"value": value}).decode()) for key, value in facts.items()]
        with self._told(), self._db:
            self._db.executemany("INSERT OR REPLACE INTO run VALUES (?, ?)", rows)

    def facts(self) -> dict[str, Any]:
        """What `describe` noted."""
        with self._told():
            rows = self._db.execute("SELECT key, value FROM run").fetchall()
            return {key: _PLAIN.validate_json(value).get("value") for key, value in rows}

    def add(self, turn: Turn) -> None:
        """Record one turn; it is on disk when this returns."""
        plan, outcome = turn.plan, turn.outcome
        change = outcome.configuration.describe(plan.current)
        with self._told(), self._db:
            self._db.execute(
                "INSERT INTO turns VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    turn.number,
                    plan.decided_at,
                    outcome.status.value,
                    plan.reason,
                    change,
                    plan.alert,
                    _text(turn),
                ),
            )

    def turns(self) -> Iterator[Turn]:
        """Every turn in order."""
        with self._told():
            for (text,) in self._db.execute("SELECT turn FROM turns ORDER BY number"):
                yield _TURN.validate_json(text)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def __enter__(self) -> "Journal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _text(turn: Turn) -> str:
    """Write a turn as JSON in which an infinity stays one; strict JSON would make it null."""
    return to_json(_TURN.dump_python(turn, mode="json"), inf_nan_mode="constants").decode()
