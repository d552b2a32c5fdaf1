"""A decision is in the journal before it is applied; journals of version 2, which lack that, still open."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from rheostat.control.turn import Turn
from rheostat.journal.store import Journal
from rheostat.model.decision import Cause, Status
from rheostat.model.errors import FileError
from rheostat.model.observation import Event
from tests.journal.samples import turns, without_outcome, write_interrupted, write_pending

VERSION_2 = Path(__file__).with_name("version2.sql").read_text()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "j.sqlite"


@pytest.fixture
def old(path: Path) -> Path:
    """A journal as version 2 left it."""
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.executescript(VERSION_2)
    return path


@pytest.fixture
def change() -> Turn:
    return turns(10, events=(Event(595.0, "executor lost", "3 on n1"),))[-1]


def test_a_decision_is_on_disk_before_its_outcome_and_comes_back_exactly(path: Path, change: Turn) -> None:
    infinite = Cause("lag", "all", float("inf"), ">", 0.1)
    decision = replace(without_outcome(change), plan=replace(change.plan, causes=(infinite,)))
    writer = Journal(path)
    writer.decided(decision)
    with Journal.read(path) as reader:  # as after a crash: the writer was never closed
        assert reader.pending() == decision
        assert reader.last() is None
        assert list(reader.turns()) == []
        assert reader.totals().turns == 0
    writer.close()


def test_a_turn_takes_the_place_of_its_decision(path: Path, change: Turn) -> None:
    with Journal(path) as journal:
        journal.decided(without_outcome(change))
        journal.done(change)
        assert journal.pending() is None
        assert list(journal.turns()) == [change]
        assert journal.events() == list(change.observation.events)


def test_a_turn_without_a_change_needs_no_decision(path: Path) -> None:
    with Journal(path) as journal:
        journal.done(turns(1)[0])
        assert journal.pending() is None


def test_on_a_full_disk_a_decision_waits_until_its_turn_replaces_it(path: Path, change: Turn) -> None:
    with Journal(path) as journal:
        pages = journal._db.execute("PRAGMA page_count").fetchone()[0]
        journal._db.execute(f"PRAGMA max_page_count = {pages}")  # SQLite's own full disk
        fillers = turns(9, events=(Event(1.0, "driver", "x" * 5000),))
        for turn in fillers:
            journal.done(turn)
        journal.decided(without_outcome(change))
        assert journal.trouble == "database or disk is full"
        assert journal.pending() is None
        journal.done(change)
        journal._db.execute("PRAGMA max_page_count = 1000000")
        journal.note(Event(1e6, "stopped", "by the user"))
        assert [turn.number for turn in journal.turns()] == list(range(1, 11))
        assert journal.pending() is None


def test_an_edited_decision_is_refused_in_one_line(path: Path, change: Turn) -> None:
    with Journal(path) as journal:
        journal.decided(without_outcome(change))
        journal._db.execute("UPDATE pending SET decision = '{}'")
        with pytest.raises(FileError, match=r"j\.sqlite: holds something that is not a valid Decision"):
            journal.pending()


def test_an_interrupted_change_counts_for_the_guards_but_not_as_a_change(path: Path) -> None:
    turn = write_interrupted(path)
    assert turn.outcome.status is Status.INTERRUPTED
    with Journal.read(path) as journal:
        assert journal.pending() is None
        assert journal.last() == turn
        assert journal.changed_at(0.0) == (700.0,)
        totals = journal.totals()
        assert (totals.turns, totals.applied, totals.failed, totals.interrupted) == (10, 0, 0, 1)
        assert totals.attempts == 1
        (line,) = journal.changes()
    assert (line.status, line.change) == ("interrupted", "split 1 -> 2")
    assert line.outcome.endswith("was finished; when the run was resumed, the application ran as before")
    assert line.node_seconds == 2 * 60.0  # up to the decision: what ran after that, nobody counted


def test_a_journal_of_version_2_is_read_and_left_as_it_is(old: Path) -> None:
    content = old.read_bytes()
    with Journal.read(old) as journal:
        assert [turn.outcome.status for turn in journal.turns()] == ["unchanged", "applied", "unchanged"]
        assert [line.change for line in journal.changes()] == ["split 1 -> 2"]
        assert journal.pending() is None
        assert journal.facts()["policy"] == "sometimes(every=2)"
    assert old.read_bytes() == content


def test_a_journal_of_version_2_is_upgraded_when_it_is_continued(old: Path) -> None:
    with Journal.read(old) as journal:
        before = (list(journal.turns()), journal.changes(), journal.events(), journal.totals())
    decision = write_pending(old.with_name("other.sqlite"))
    with Journal(old) as journal:
        assert (list(journal.turns()), journal.changes(), journal.events(), journal.totals()) == before
        journal.decided(decision)
    with Journal.read(old) as journal:
        assert journal.pending() == decision
    with closing(sqlite3.connect(old)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (3,)


@pytest.fixture
def refuses_tables(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An upgrade that fails half-way."""
    with monkeypatch.context() as patch:
        patch.setattr("rheostat.journal.store.PENDING", "CREATE TABLE pending (x); CREATE nonsense")
        yield


@pytest.mark.usefixtures("refuses_tables")
def test_an_upgrade_that_fails_leaves_the_journal_in_version_2(old: Path) -> None:
    with pytest.raises(FileError, match="not a journal that can be used"):
        Journal(old)
    with closing(sqlite3.connect(old)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (2,)
        assert "pending" not in {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
