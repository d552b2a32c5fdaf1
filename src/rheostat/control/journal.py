"""The journal: every observation, decision and outcome in one SQLite file, readable by anything."""

import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from pydantic import TypeAdapter

from rheostat.control.loop import Turn
from rheostat.model.errors import FileError

VERSION = 1
_TURN: TypeAdapter[Turn] = TypeAdapter(Turn)
_PLAIN: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])
_SCHEMA = f"""
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
"""


class Journal:
    """One run's journal; a context manager."""

    def __init__(self, path: Path) -> None:
        """Create a new journal, or open an existing one of this version."""
        self.path = path
        new = not path.exists() or path.stat().st_size == 0
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path)
            if new:
                self._db.execute("PRAGMA journal_mode=WAL")
                self._db.executescript(_SCHEMA)
            version = self._db.execute("PRAGMA user_version").fetchone()[0]
        except (sqlite3.Error, OSError) as error:
            raise FileError(f"{path}: not a journal that can be used: {error}") from None
        if version != VERSION:
            self._db.close()
            raise FileError(f"{path}: a journal of version {version}, this Rheostat reads version {VERSION}")

    def describe(self, facts: Mapping[str, Any]) -> None:
        """Note what the run is about: its topology, policy, load, seed."""
        rows = [(key, _PLAIN.dump_json({"value": value}).decode()) for key, value in facts.items()]
        with self._db:
            self._db.executemany("INSERT OR REPLACE INTO run VALUES (?, ?)", rows)

    def facts(self) -> dict[str, Any]:
        """What `describe` noted."""
        rows = self._db.execute("SELECT key, value FROM run").fetchall()
        return {key: _PLAIN.validate_json(value)["value"] for key, value in rows}

    def add(self, turn: Turn) -> None:
        """Record one turn; it is on disk when this returns."""
        plan, outcome = turn.plan, turn.outcome
        change = outcome.configuration.describe(plan.current)
        with self._db:
            self._db.execute(
                "INSERT INTO turns VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    turn.number,
                    plan.decided_at,
                    outcome.status.value,
                    plan.reason,
                    change,
                    plan.alert,
                    _TURN.dump_json(turn).decode(),
                ),
            )

    def turns(self) -> Iterator[Turn]:
        """Every turn in order."""
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
