import json
import os
import sqlite3
import time
from dataclasses import replace
from pathlib import Path

import pytest

from rheostat.journal.store import Journal
from rheostat.model.observation import Event
from tests.cli.commands import call, process, refused
from tests.cli.journals import turns, with_alert, write


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


def status(capsys: pytest.CaptureFixture[str], *more: str, path: str = "j.sqlite") -> str:
    assert call("status", "--journal", path, *more) == 0
    told = capsys.readouterr()
    assert told.err == ""
    return told.out


def test_people_see_what_runs_how_it_fares_and_what_changed(capsys: pytest.CaptureFixture[str]) -> None:
    write(Path("j.sqlite"), turns(25), Event(1500.0, "stopped", "by the user"))
    told = status(capsys)
    lines = told.splitlines()
    assert lines[:2] == ["words with sometimes (pipelined)", "25 turns; a record of 25m"]
    assert "Latest window: 1m until 1,500 s (turn 25)" in lines
    assert "  load 1,000 rows/s, throughput 1,000 rows/s, lag 0 s, backlog 0 rows" in lines
    assert "operator instances rows/s utilisation CPU cores skew waiting" in lines
    assert "node kind  region slots instances  CPU memory" in lines
    assert "  - turn 20, 1,200 s: split 2 -> 1" in lines
    assert "    because it is time" in lines
    assert "  - 1,500 s stopped: by the user" in lines
    assert "  whole run: 2 changes applied, 0 failed; 0.833 node-hours; stood still for 0 s" in lines
    assert max(map(len, lines)) <= 80


def test_the_last_changes_are_as_many_as_asked(capsys: pytest.CaptureFixture[str]) -> None:
    write(Path("j.sqlite"), turns(100))
    assert "10 changes, the last 5;" in status(capsys)
    assert "10 changes;" in status(capsys, "--last", "10")
    assert [line["number"] for line in json.loads(status(capsys, "-n", "2", "--json"))["changes"]] == [
        90,
        100,
    ]


def test_failed_changes_alerts_and_events_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    made = turns(22, failing=True)
    made[4:7] = [with_alert(turn, "at the limit") for turn in made[4:7]]
    write(Path("j.sqlite"), made, Event(1000.0, "restarted", "the query\x1b[31m"))
    told = status(capsys)
    assert "turn 20, 1,200 s: FAILED: split 1 -> 2" in told
    assert "but no machine left" in told
    assert "300 s to 420 s, 3 times: at the limit" in told
    assert "1,000 s restarted: the query?[31m" in told
    assert "0 changes applied, 2 failed" in told


@pytest.mark.parametrize(
    ("ago", "facts", "event", "state", "says"),
    [
        (3, {"pid": os.getpid()}, None, "running", "running, last turn 3s ago"),
        (3, {}, None, "running", "running, last turn 3s ago"),
        (3, {"pid": 2**22 + 5}, None, "gone", "process 4194309 is gone"),
        (3, {"pid": 2**22 + 5, "host": "elsewhere"}, None, "running", "running"),
        (7200, {"pid": os.getpid()}, None, "silent", "no turn since 2h: not running?"),
        (7200, {"pid": 2**22 + 5}, "stopped", "stopped", "stopped, last turn 2h ago"),
    ],
)
def test_the_journal_tells_whether_the_controller_lives(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    ago: float,
    facts: dict[str, object],
    event: str | None,
    state: str,
    says: str,
) -> None:
    notes, now = [Event(1500.0, event, "by the user")] if event else [], time.time()
    write(Path("j.sqlite"), turns(25), *notes, started_at=now - 1500 - ago, **facts)
    monkeypatch.setattr(time, "time", lambda: now)
    told = json.loads(status(capsys, "--json"))
    assert told["state"] == state
    assert says in told["says"]
    assert told["last_turn_seconds_ago"] == pytest.approx(ago, abs=2)
    assert "began" in status(capsys)


def test_a_run_is_titled_by_its_application(capsys: pytest.CaptureFixture[str]) -> None:
    write(Path("j.sqlite"), turns(1), application="shop")
    assert status(capsys).startswith("shop with sometimes (pipelined)\n")


def test_programs_get_everything_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    made = turns(12)
    seen = made[-1].observation
    parts = replace(seen.application, batch_seconds=2.0, batches=4, batch_parts={"addBatch": 1.5})
    made[-1] = replace(made[-1], observation=replace(seen, application=parts))
    write(Path("j.sqlite"), made)
    told = json.loads(status(capsys, "--json"))
    assert told["facts"]["policy"] == "sometimes"
    assert told["window"]["batch_parts"] == {"addBatch": 1.5}
    assert told["window"]["operators"]["split"]["parallelism"] == 2
    assert told["window"]["nodes"][0]["slots"] == 2
    assert told["whole_run"]["applied"] == 1
    shown = status(capsys)
    assert "a batch takes 2 s (4 in the window)" in " ".join(shown.split())
    assert "parts of a batch: addBatch 1.5 s" in shown


def test_a_journal_without_turns_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    write(Path("j.sqlite"), [])
    assert "0 turns; no turn yet" in status(capsys)
    assert json.loads(status(capsys, "--json"))["window"] is None


def test_a_window_in_which_something_was_not_measured_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    write(Path("j.sqlite"), turns(2, blind=True))
    assert "not measured: nodes" in status(capsys)


def test_many_nodes_are_summed_up(capsys: pytest.CaptureFixture[str]) -> None:
    made = turns(1)
    seen = made[0].observation
    many = tuple(replace(seen.nodes[0], name=f"n{index}") for index in range(50))
    write(Path("j.sqlite"), [replace(made[0], observation=replace(seen, nodes=many))])
    told = status(capsys)
    assert "38 more" in told
    assert len(told.splitlines()) < 40


def test_without_a_path_the_newest_run_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("old", "new", "middle"):
        write(Path(f".rheostat/{name}/journal.sqlite"), turns(1), policy=name)
    for age, name in enumerate(("new", "middle", "old")):
        os.utime(f".rheostat/{name}/journal.sqlite", (1e9 - age, 1e9 - age))
    status(capsys, path=".rheostat/old/journal.sqlite")  # to look at a journal does not make it newer
    assert call("status") == 0
    assert "words with new" in capsys.readouterr().out


def test_a_journal_that_is_being_written_is_the_newest(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("live", "done"):
        write(Path(f".rheostat/{name}/journal.sqlite"), turns(1), policy=name)
    with Journal(Path(".rheostat/live/journal.sqlite")) as journal:
        journal.note(Event(60.0, "resumed", "by the user"))  # in the log, not yet in the file
        for name in ("live", "done"):
            os.utime(f".rheostat/{name}/journal.sqlite", (1e9, 1e9))
        assert call("status") == 0
    assert "words with live" in capsys.readouterr().out


def test_a_folder_without_runs_is_told_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    line = refused(capsys, "status")
    assert "start one with `rheostat run`, or give --journal" in line
    assert refused(capsys, "explain") == line


@pytest.mark.parametrize("command", ["status", "explain"])
def test_what_is_no_journal_is_refused_in_one_line(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    def told(name: str) -> str:
        return refused(capsys, command, "--journal", name)

    assert "there is no such journal" in told("nowhere.sqlite")
    Path("folder").mkdir()
    assert "is a folder" in told("folder")
    Path("text").write_text("hello" * 1000)
    assert "not a database" in told("text")
    Path("empty").touch()
    assert "version 0" in told("empty")
    for name, version in (("songs", 2), ("old", 1)):
        db = sqlite3.connect(name)
        db.executescript(f"CREATE TABLE songs (x); PRAGMA user_version = {version};")
        db.close()
    assert "no such table" in told("songs")
    assert "a journal of version 1, this Rheostat reads version 2" in told("old")
    whole = write(Path("whole"), turns(300)).read_bytes()
    Path("truncated").write_bytes(whole[: len(whole) // 2])
    assert "truncated: not a journal that can be used" in told("truncated")


def test_a_big_journal_is_read_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    made = turns(1)[0]
    with Journal(Path("j.sqlite")) as journal:
        journal._db.execute("PRAGMA synchronous = OFF")
        for number in range(1, 10_001):
            journal.add(replace(made, number=number))
    began = time.process_time()
    status(capsys)
    assert time.process_time() - began < 1.0


def test_a_pipe_gets_no_colours_and_no_trailing_blanks(tmp_path: Path) -> None:
    write(tmp_path / "j.sqlite", turns(25))
    done = process("rheostat status -j j.sqlite", tmp_path)
    assert (done.returncode, done.stderr, "\x1b" in done.stdout) == (0, "", False)
    assert all(line == line.rstrip() for line in done.stdout.splitlines())
    coloured = process("rheostat status -j j.sqlite", tmp_path, FORCE_COLOR="1")
    assert "\x1b[1m" in coloured.stdout
