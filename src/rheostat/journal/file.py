"""The SQLite file that holds a journal: opened and checked; whatever is wrong with it becomes a FileError."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pydantic import ValidationError

from rheostat.journal.rows import RolledUp, TurnSummary, columns
from rheostat.journal.tables import UPGRADABLE, VERSION
from rheostat.model.errors import FileError


class JournalFile:
    """One run's journal file, opened; a context manager."""

    def __init__(self, path: Path) -> None:
        """Open a journal that exists; nothing in it can be changed."""
        if not path.exists():
            raise FileError(f"{path}: no such journal")
        if path.is_dir():
            raise FileError(f"{path}: is a folder; give the journal in it")
        self.path = path
        mode = "immutable=1" if _on_read_only_disk(path) else "mode=ro"
        self._connect(f"{path.absolute().as_uri()}?{mode}")

    def _connect(self, address: str) -> None:
        with self._errors_named():
            self._db = sqlite3.connect(address, uri=address.startswith("file:"))
        try:
            with self._errors_named():
                self._prepare()
                self._check()
                self._upgrade()
        except FileError:
            self._db.close()
            raise

    def _prepare(self) -> None:
        """What is done before the tables are checked: nothing, by a reader."""

    def _upgrade(self) -> None:
        """What an earlier version lacks: a reader leaves it so."""

    def _check(self) -> None:
        self._version = self._number("PRAGMA user_version")
        if self._version not in (UPGRADABLE, VERSION):
            raise FileError(
                f"{self.path}: a journal of version {self._version}; "
                f"this Rheostat reads versions {UPGRADABLE} and {VERSION}"
            )
        self._db.execute("SELECT key, value FROM run LIMIT 0")  # another program may use the same version
        self._db.execute("SELECT number, turn FROM details LIMIT 0")
        self._db.execute(f"SELECT {self._columns(TurnSummary)} FROM turns LIMIT 0")
        if self._version == VERSION:
            self._db.execute("SELECT number, decision FROM pending LIMIT 0")

    def _columns(self, kind: type[TurnSummary] | type[RolledUp]) -> str:
        """The columns of a kind of row, for SQL; an early version has none for money."""
        names = columns(kind)
        return names if self._version == VERSION else names.replace("money", "0.0")

    @contextmanager
    def _errors_named(self) -> Iterator[None]:
        """Turn whatever is wrong with the file into an error of one line that names the file."""
        try:
            yield
        except sqlite3.Error as error:
            raise FileError(f"{self.path}: not a journal that can be used: {error}") from None
        except ValidationError as error:
            raise self._invalid(error.title) from None
        except (UnicodeError, OverflowError) as error:
            summary = str(error).splitlines()[0]
            raise FileError(f"{self.path}: not a journal that can be used: {summary}") from None

    def _invalid(self, kind: str) -> FileError:
        return FileError(f"{self.path}: holds something that is not a valid {kind}; was it edited?")

    def _rows(self, query: str, *values: float) -> list[Any]:
        with self._errors_named():
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


def _on_read_only_disk(path: Path) -> bool:
    """Whether nobody writes it and we cannot: on a read-only disk SQLite cannot even lock it."""
    log = path.with_name(f"{path.name}-wal")
    return not log.exists() and not os.access(path.parent, os.W_OK)
