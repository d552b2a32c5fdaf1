import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from rheostat.control.guards import Guards
from rheostat.control.loop import Loop
from rheostat.control.turn import Turn
from rheostat.journal.store import Journal
from rheostat.model.configuration import Bounds
from rheostat.model.decision import Cause, Placement
from rheostat.model.errors import FileError
from tests.control.fakes import FakeClock, FakeEngine, OneMore

PLACES = Placement((("a", "n1"),), (("b", "n2"),), (("small", "local"),), ("n3",), ("n4",), True)


def turns() -> list[Turn]:
    """Some that change, one that a guard holds."""
    loop = Loop(FakeEngine(c := FakeClock(), takes=1.5), c, OneMore(), Bounds(1, 9), Guards(0.0, 2))
    return list(loop.run(until=250.0))


def test_turns_come_back_exactly_as_they_were(tmp_path: Path) -> None:
    written = turns()
    first = written[0]
    causes = (Cause("lag", "all", float("inf"), ">", 0.1), Cause("load", "ä", 1 / 3, "<=", 1e-300))
    full = replace(first.plan, causes=causes, placement=PLACES, rejected=("no",), alert="'; DROP TABLE turns")
    written[0] = replace(first, plan=full, memory={"a": [1, 2.5, None, {"b": "ü\n"}]})
    with Journal(tmp_path / "j.sqlite") as journal:
        for turn in written:
            journal.done(turn)
        assert list(journal.turns()) == written
    with Journal(tmp_path / "j.sqlite") as again:
        assert list(again.turns()) == written


def test_facts_come_back_and_the_newest_wins(tmp_path: Path) -> None:
    with Journal(tmp_path / "j.sqlite") as journal:
        journal.describe({"topology": "words", "seed": 3, "nested": {"a": [1, None]}})
        journal.describe({"seed": 4})
        assert journal.facts() == {"topology": "words", "seed": 4, "nested": {"a": [1, None]}}


def test_any_program_can_read_it_while_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    with Journal(path) as journal:
        for turn in turns():
            journal.done(turn)
        reader = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        rows = reader.execute("SELECT number, at, status, reason, change, alert FROM turns").fetchall()
        mode = reader.execute("PRAGMA journal_mode").fetchone()[0]
        reader.close()
    assert mode == "wal"
    assert rows[0] == (1, 60.0, "applied", "one more", "split 1 -> 2", None)
    assert [row[2] for row in rows] == ["applied", "applied", "unchanged", "unchanged"]


def test_a_turn_is_on_disk_as_soon_as_it_is_added(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.sqlite")
    journal.done(turns()[0])
    with Journal(tmp_path / "j.sqlite") as second:  # as after a crash: the first was never closed
        assert len(list(second.turns())) == 1
    journal.close()


def test_a_missing_folder_is_created(tmp_path: Path) -> None:
    with Journal(tmp_path / "a" / "b" / "j.sqlite") as journal:
        assert journal.facts() == {}


def test_the_same_turn_twice_is_refused(tmp_path: Path) -> None:
    with Journal(tmp_path / "j.sqlite") as journal:
        journal.done(turns()[0])
        with pytest.raises(FileError, match="UNIQUE"):
            journal.done(turns()[0])
        assert len(list(journal.turns())) == 1


def refusal(path: Path) -> str:
    with pytest.raises(FileError) as refused:
        Journal(path)
    assert str(path) in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1
    return str(refused.value)


def database(path: Path, script: str) -> Path:
    db = sqlite3.connect(path)
    db.executescript(script)
    db.close()
    return path


@pytest.mark.parametrize("version", [0, 1, 99])
def test_another_version_is_refused(tmp_path: Path, version: int) -> None:
    path = database(tmp_path / "j.sqlite", f"CREATE TABLE t (x); PRAGMA user_version = {version};")
    assert f"a journal of version {version}; this Rheostat reads versions 2 and 3" in refusal(path)


@pytest.mark.parametrize("version", [2, 3])
def test_another_programs_database_of_the_same_version_is_refused_and_left_alone(
    tmp_path: Path, version: int
) -> None:
    path = database(tmp_path / "j.sqlite", f"CREATE TABLE songs (x); PRAGMA user_version = {version};")
    content = path.read_bytes()
    assert "no such table" in refusal(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("content", [b"garbage", b"SQLite format 3\0" + b"\xff" * 200, b"\0" * 5000])
def test_a_file_that_is_not_a_database_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "j.sqlite"
    path.write_bytes(content)
    refusal(path)
    assert path.read_bytes() == content


def test_places_where_no_file_can_be_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    refusal(tmp_path)
    refusal(tmp_path / "file" / "j.sqlite")
    refusal(tmp_path / ("x" * 300))


@pytest.mark.parametrize("text", ["{}", "not json", '{"number": "one"}'])
def test_an_edited_turn_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "j.sqlite"
    with Journal(path) as journal:
        journal.done(turns()[0])
        journal.describe({"seed": 1})
    db = sqlite3.connect(path)
    with db:
        db.execute("UPDATE details SET turn = ?", (text,))
        db.execute("UPDATE run SET value = 'x'")
    db.close()
    with Journal(path) as journal:
        with pytest.raises(FileError, match=r"j\.sqlite: holds something that is not a valid Turn"):
            list(journal.turns())
        with pytest.raises(FileError, match=r"j\.sqlite: holds something that is not a valid"):
            journal.facts()


def test_an_empty_file_becomes_a_journal(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    path.touch()
    with Journal(path) as journal:
        assert list(journal.turns()) == []


def test_a_plan_of_an_earlier_version_that_contradicts_its_placement_can_still_be_read(
    tmp_path: Path,
) -> None:
    path = tmp_path / "j.sqlite"
    with Journal(path) as journal:
        journal.done(turns()[0])
    with closing(sqlite3.connect(path)) as db, db:
        (text,) = db.execute("SELECT turn FROM details").fetchone()
        old = json.loads(text)
        old["plan"]["placement"]["remove"] = ["n1"]
        db.execute("UPDATE details SET turn = ?", (json.dumps(old),))
    with Journal.read(path) as journal:
        (turn,) = journal.turns()
    assert (turn.plan.placement.remove, turn.plan.target) == ((), turns()[0].plan.target)
