"""Journals on a full disk, of a killed writer, and read while they are written."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import pytest

from rheostat.control.guards import Guards
from rheostat.control.loop import Loop
from rheostat.control.turn import Turn
from rheostat.journal.store import KEPT_IN_MEMORY, Entry, Journal
from rheostat.model.errors import FileError
from rheostat.model.observation import Event
from tests.control.fakes import FakeClock, FakeEngine, Sometimes

WRITER = """
import sys, itertools
from pathlib import Path
sys.path.insert(0, {root!r})
from rheostat.journal.store import Journal
from rheostat.control.loop import Loop
from tests.control.fakes import FakeClock, FakeEngine, Sometimes
clock = FakeClock()
journal = Journal(Path({path!r}))
for turn in Loop(FakeEngine(clock), clock, Sometimes()).run(until=1e9):
    journal.done(turn)
    if turn.number == 30:
        print("ready", flush=True)
"""


def turns(count: int, events: tuple[Event, ...] = ()) -> list[Turn]:
    engine = FakeEngine(FakeClock(), events=events)
    return list(Loop(engine, engine.clock, Sometimes()).run(until=60.0 * (count + 1)))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of four megabytes, where this machine lets us mount one."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this machine lets nobody mount a file system")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_delays_turns_and_the_gap_is_noted(
    small_disk: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ballast, path = small_disk / "ballast", small_disk / "j.sqlite"
    written = turns(60)
    with Journal(path, 2**20) as journal:
        for turn in written[:20]:
            journal.done(turn)
        ballast.write_bytes(b"x" * _free(small_disk))
        for turn in written[20:40]:
            journal.done(turn)
        assert journal.trouble == "database or disk is full"
        assert len(list(journal.turns())) < 40
        ballast.unlink()
        journal.done(written[40])
        assert journal.trouble is None
        assert list(journal.turns()) == written[:41]
        (gap,) = journal.events()
    assert (gap.at, gap.kind) == (written[40].plan.decided_at, "journal")
    assert gap.text.startswith("could not be written: database or disk is full; ")
    assert gap.text.endswith(" written late, 0 lost")
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "turns are kept in memory" in caplog.text


def test_a_disk_that_stays_full_is_an_error_at_the_end(small_disk: Path) -> None:
    path = small_disk / "j.sqlite"
    journal = Journal(path, 2**20)
    written = turns(40)
    journal.done(written[0])
    (small_disk / "ballast").write_bytes(b"x" * _free(small_disk))
    for turn in written[1:]:
        journal.done(turn)
    with pytest.raises(
        FileError, match=r"j\.sqlite: cannot be written: database or disk is full; \d+ entries"
    ):
        journal.close()
    with Journal.read(path) as again:
        assert next(again.turns()) == written[0]


def test_a_journal_on_a_read_only_disk_is_read(small_disk: Path) -> None:
    path = small_disk / "j.sqlite"
    with Journal(path) as journal:
        journal.describe({"seed": 1})
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with Journal.read(path) as reader:
        assert reader.facts() == {"seed": 1}


def _free(folder: Path) -> int:
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize


def test_memory_is_bounded_while_nothing_can_be_written(tmp_path: Path) -> None:
    written = turns(KEPT_IN_MEMORY + 30)
    with Journal(tmp_path / "j.sqlite") as journal:
        pages = journal._db.execute("PRAGMA page_count").fetchone()[0]
        journal._db.execute(f"PRAGMA max_page_count = {pages}")  # SQLite's own full disk
        for turn in written:
            journal.done(turn)
        assert journal.trouble == "database or disk is full"
        journal._db.execute("PRAGMA max_page_count = 1000000")
        journal.note(Event(1e6, "stopped", "by the user"))
        kept = [turn.number for turn in journal.turns()]
        assert kept[-1] == len(written)
        assert len(kept) <= KEPT_IN_MEMORY + 10
        assert [event.kind for event in journal.events()] == ["stopped", "journal"]
        lost = len(written) - len(kept)
        assert lost > 0
        assert journal.events()[-1].text.endswith(f" {lost} lost")


def test_a_first_error_is_not_hidden_by_a_full_disk(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), Journal(tmp_path / "j.sqlite") as journal:
        journal._db.execute("PRAGMA max_page_count = 1")
        for turn in turns(40):
            journal.done(turn)
        raise ZeroDivisionError


def test_another_writers_lock_delays_turns_only(tmp_path: Path) -> None:
    path, (first, second, third) = tmp_path / "j.sqlite", turns(3)
    with Journal(path) as journal:
        journal.done(first)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        journal._db.execute("PRAGMA busy_timeout = 10")
        journal.done(second)
        assert journal.trouble == "database is locked"
        other.execute("ROLLBACK")
        other.close()
        journal.done(third)
        assert list(journal.turns()) == [first, second, third]


def test_events_of_windows_and_of_the_controller_are_kept_in_order(tmp_path: Path) -> None:
    lost = Event(50.0, "executor lost", "3 on n1")
    with Journal(tmp_path / "j.sqlite") as journal:
        journal.note(Event(0.0, "started", "by the user"))
        journal.done(turns(1, (lost,))[0])
        assert journal.events() == [Event(0.0, "started", "by the user"), lost]
        assert journal.events(since=1.0) == [lost]


def test_a_journal_of_a_killed_writer_is_read_and_continued(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    root = str(Path(__file__).parents[2])
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER.format(root=root, path=str(path))], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    assert writer.stdout.readline() == "ready\n"
    with Journal.read(path) as reader:  # while it is written
        assert reader.changes()[0].number == 10
        before = reader.last()
        assert before is not None
        until = time.monotonic() + 30
        while (now := reader.last()) == before and time.monotonic() < until:
            time.sleep(0.01)
        assert now is not None and now.number > before.number
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    writer.stdout.close()
    with Journal.read(path) as reader:
        last = reader.last()
        assert last is not None and last.number >= now.number
    with Journal(path) as again:
        again.done(_next(last, again))
        assert again.totals().turns == last.number + 1


def _next(last: Turn, journal: Journal) -> Turn:
    engine = FakeEngine(FakeClock(last.outcome.finished_at + 60))
    loop = Loop(engine, engine.clock, Sometimes(), guards=Guards(cooldown_seconds=1e6))
    loop.resume(last, journal.changed_at(since=0.0))
    turn = loop.turn()
    assert turn.memory["asked"] == last.number + 1
    assert loop.changed_at
    return turn


def test_a_reader_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    with Journal(path) as journal:
        journal.done(turns(1)[0])
    before = path.read_bytes()
    with Journal.read(path) as reader, pytest.raises(sqlite3.OperationalError, match="readonly"):
        reader._db.execute("DELETE FROM turns")
    assert path.read_bytes() == before


def test_a_name_with_question_marks_is_a_name(tmp_path: Path) -> None:
    path = tmp_path / "a?b#c%20d.sqlite"
    with Journal(path) as journal:
        journal.describe({"seed": 1})
    with Journal.read(path) as reader:
        assert reader.facts() == {"seed": 1}


def test_what_cannot_be_read_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="no such journal"):
        Journal.read(tmp_path / "nowhere.sqlite")
    with pytest.raises(FileError, match="is a folder"):
        Journal.read(tmp_path)


class Interrupted(deque[Entry]):
    """Ctrl-C comes between the commit and the moment at which the journal notes it."""

    came = False

    def popleft(self) -> Entry:
        if not self.came:
            self.came = True
            raise KeyboardInterrupt
        return super().popleft()


def test_ctrl_c_right_after_a_turn_was_written_writes_it_once(tmp_path: Path) -> None:
    turn = turns(1)[0]
    with Journal(tmp_path / "j.sqlite") as journal:
        journal._waiting = Interrupted()
        with pytest.raises(KeyboardInterrupt):
            journal.done(turn)
        journal.note(Event(1.0, "stopped", "interrupted"))
    with Journal.read(tmp_path / "j.sqlite") as read:
        assert [kept.number for kept in read.turns()] == [turn.number]
        assert [event.kind for event in read.events()][-1] == "stopped"
