import os
from pathlib import Path

from rheostat.journal.locate import newest_journal
from rheostat.journal.store import Journal
from rheostat.model.observation import Event
from tests.journal.samples import turns, write


def journal_of(folder: Path, run: str) -> Path:
    return folder / ".rheostat" / run / "journal.sqlite"


def test_the_journal_that_was_written_last_is_the_newest(tmp_path: Path) -> None:
    for age, run in enumerate(("new", "middle", "old")):
        path = write(journal_of(tmp_path, run), turns(1))
        os.utime(path, (1e9 - age, 1e9 - age))
    with Journal.read(journal_of(tmp_path, "old")) as journal:  # reading does not make it newer
        journal.last()
        assert newest_journal(tmp_path) == journal_of(tmp_path, "new")


def test_a_journal_that_is_being_written_is_the_newest(tmp_path: Path) -> None:
    for run in ("live", "done"):
        write(journal_of(tmp_path, run), turns(1))
    with Journal(journal_of(tmp_path, "live")) as journal:
        journal.note(Event(60.0, "resumed", "by the user"))  # in the log, not yet in the file
        for run in ("live", "done"):
            os.utime(journal_of(tmp_path, run), (1e9, 1e9))
        assert newest_journal(tmp_path) == journal_of(tmp_path, "live")


def test_without_any_run_there_is_no_newest_journal(tmp_path: Path) -> None:
    assert newest_journal(tmp_path) is None
