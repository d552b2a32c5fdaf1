"""Journals of another version, damaged or edited: read, continued or refused in one line."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rheostat.control.loop import Loop
from rheostat.journal.reader import JournalReader
from rheostat.journal.store import Journal
from rheostat.model.errors import FileError
from rheostat.model.observation import Event
from tests.cli.commands import call
from tests.control.fakes import FakeClock, FakeEngine, Sometimes
from tests.journal.samples import turns, without_outcome, write

from .absurd import FUZZ, VALUES, spoiled

COMMANDS = st.sampled_from(
    [["status"], ["status", "--json"], ["explain"], ["explain", "--json"], ["explain", "20"]]
)
FEWER = settings(FUZZ, max_examples=60)  # each opens a database several times
TABLES = ("run", "turns", "details", "pending", "windows", "events")
CELLS = [
    value for value in VALUES if value is None or isinstance(value, str | float | bool) or value == -1
] + [b"\x00\xff", 2**62, "{}", "NaN", '{"value": NaN}', '{"value": {"a": 1e999}}']


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A journal of forty turns with changes and events, and of a change without an outcome, as one file."""
    path = tmp_path_factory.mktemp("sound") / "j.sqlite"
    notes = (Event(0.0, "started", "by a test"), Event(90.0, "node", "n1 ended by itself"))
    killed = turns(41, Sometimes(every=41))[-1]
    write(path, turns(40), *notes, started_at=1_700_000_000.0)
    with Journal(path) as journal:
        journal.decided(without_outcome(killed))
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = DELETE")
        db.execute("INSERT INTO windows VALUES (0, 60, 1, 60, 5, 5, 0, 0, 0, 2, 2, 3, 120, 0)")
        db.commit()
    return path.read_bytes()


def read(path: Path) -> None:
    """Everything that a reader offers."""
    with JournalReader(path) as journal:
        asked: tuple[Callable[[], Any], ...] = (
            journal.facts, journal.last, journal.pending, journal.changes, journal.alerts, journal.events,
            journal.windows, journal.totals, lambda: list(journal.turns()), lambda: journal.turn(10),
            lambda: journal.summary(10), lambda: journal.following(10, 5), lambda: journal.changed_at(0.0),
        )  # fmt: skip
        for ask in asked:
            told(ask)


def resume(path: Path) -> None:
    """Go on with it, as a controller does; the engine must end up where a sound policy wants it."""
    with Journal(path) as journal:
        last, pending = journal.last(), journal.pending()
        engine = FakeEngine(FakeClock(3_000.0))
        loop = Loop(engine, engine.clock, Sometimes(), recorder=journal)
        if newest := pending or last:
            loop.resume(newest, journal.changed_at(0.0))
        if pending is not None:
            loop.reconcile(pending)
        loop.turn()
        assert set(engine.configuration.parallelism.values()) <= {1, 2}


def told(do: Callable[[], Any]) -> None:
    """Do it, or be told in one line that the file is no good."""
    try:
        do()
    except FileError as error:
        assert len(str(error).splitlines()) == 1
        assert ".sqlite" in str(error)


def check(path: Path, command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    told(lambda: read(path))
    code = call(*command, "--journal", str(path))
    said = capsys.readouterr()
    assert code in (0, 2), said.err
    assert len(said.err.splitlines()) == (1 if code else 0), said.err
    told(lambda: resume(path))


def fresh(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "j.sqlite"
    for old in tmp_path.glob("j.sqlite*"):
        old.unlink()
    path.write_bytes(content)
    return path


@FEWER
@given(data=st.data(), command=COMMANDS)
def test_bytes_that_flipped_or_are_gone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], sound: bytes, data: st.DataObject, command: list[str]
) -> None:
    content = bytearray(sound)
    first_page = data.draw(st.booleans())
    for _ in range(data.draw(st.integers(1, 12))):
        place = data.draw(st.integers(0, (200 if first_page else len(content)) - 1))
        content[place] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content))) :]
    check(fresh(tmp_path, bytes(content)), command, capsys)


@FEWER
@given(data=st.data(), command=COMMANDS)
def test_cells_that_hold_something_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], sound: bytes, data: st.DataObject, command: list[str]
) -> None:
    path = fresh(tmp_path, sound)
    with closing(sqlite3.connect(path)) as db:
        for _ in range(data.draw(st.integers(1, 4))):
            table = data.draw(st.sampled_from(TABLES))
            columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
            column = data.draw(st.sampled_from(columns))
            where = data.draw(st.sampled_from(["", " WHERE rowid % 2 = 0", " WHERE rowid = 40"]))
            value = data.draw(st.sampled_from(CELLS))
            try:
                db.execute(f"UPDATE OR IGNORE {table} SET {column} = ?{where}", (value,))
            except (sqlite3.Error, UnicodeEncodeError):  # SQLite itself refuses it
                continue
        db.commit()
    check(path, command, capsys)


@FEWER
@given(data=st.data(), command=COMMANDS)
def test_turns_that_another_version_wrote(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], sound: bytes, data: st.DataObject, command: list[str]
) -> None:
    path = fresh(tmp_path, sound)
    with closing(sqlite3.connect(path)) as db:
        (text,) = db.execute("SELECT turn FROM details WHERE number = 40").fetchone()
        changed = json.dumps(data.draw(spoiled(json.loads(text))))
        db.execute("UPDATE details SET turn = ? WHERE number IN (20, 40)", (changed,))
        db.commit()
    check(path, command, capsys)


@FEWER
@given(data=st.data(), command=COMMANDS, version=st.integers(-1, 5))
def test_tables_of_another_version(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    sound: bytes,
    data: st.DataObject,
    command: list[str],
    version: int,
) -> None:
    path = fresh(tmp_path, sound)
    with closing(sqlite3.connect(path)) as db:
        for table in data.draw(st.lists(st.sampled_from(TABLES), unique=True, min_size=1)):
            columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
            column = data.draw(st.sampled_from(columns))
            change = data.draw(
                st.sampled_from(
                    [
                        f"DROP TABLE {table}",
                        f"ALTER TABLE {table} RENAME COLUMN {column} TO other",
                        f"ALTER TABLE {table} ADD COLUMN more TEXT",
                        f"DELETE FROM {table}",
                        f"ALTER TABLE {table} RENAME TO old_{table}; CREATE TABLE {table} (x BLOB)",
                    ]
                )
            )
            db.executescript(change)
        db.execute(f"PRAGMA user_version = {data.draw(st.sampled_from([2, 3, version]))}")
        db.commit()
    check(path, command, capsys)


@pytest.mark.parametrize("text", ["\ud800 half a character", "NUL \x00 inside", "\x1b[31mred"])
def test_an_event_with_any_text_can_be_kept(tmp_path: Path, text: str) -> None:
    with Journal(tmp_path / "j.sqlite") as journal:
        journal.note(Event(1.0, "driver", text))
        journal.done(turns(1, events=(Event(2.0, "driver", text),))[0])
        assert len(journal.events()) == 2
        last = journal.last()
        assert last is not None and len(last.observation.events) == 1
