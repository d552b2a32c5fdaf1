import json
import os
import sqlite3
import time
from dataclasses import replace
from pathlib import Path

import pytest

from rheostat.cli.status_page import describe_liveness
from rheostat.journal.liveness import Liveness, State
from rheostat.journal.store import Journal
from rheostat.model.observation import ApplicationMeasures, Event
from tests.cli.commands import call, process, refused
from tests.journal.samples import turns, with_alert, write, write_interrupted, write_pending


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


def status(capsys: pytest.CaptureFixture[str], *more: str, path: str = "j.sqlite") -> str:
    assert call("status", "--journal", path, *more) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    return printed.out


def test_people_see_what_runs_how_it_is_doing_and_what_changed(capsys: pytest.CaptureFixture[str]) -> None:
    write(Path("j.sqlite"), turns(25), Event(1500.0, "stopped", "by the user"))
    text = status(capsys)
    lines = text.splitlines()
    assert lines[:2] == ["words with sometimes (pipelined)", "25 turns; simulated, 25m"]
    assert "Latest window: 1m until 1,500 s (turn 25)" in lines
    assert "  load 1,000 rows/s, throughput 1,000 rows/s, lag 0 s, backlog 0 rows" in lines
    assert "operator instances rows/s utilisation CPU cores skew waiting" in lines
    assert "node kind  region slots instances  CPU memory" in lines
    assert "  - turn 20, 1,200 s: split 2 -> 1" in lines
    assert "    because it is time" in lines
    assert "  - 1,500 s stopped: by the user" in lines
    assert "  whole run: 2 changes applied, 0 failed; 0.833 node-hours; paused for 0 s" in lines
    assert max(map(len, lines)) <= 80


def test_as_many_changes_are_shown_as_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    write(Path("j.sqlite"), turns(100))
    assert "10 changes, the last 5;" in status(capsys)
    assert "10 changes;" in status(capsys, "--last", "10")
    assert [line["number"] for line in json.loads(status(capsys, "-n", "2", "--json"))["changes"]] == [
        90,
        100,
    ]


def test_failed_changes_alerts_and_events_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    made = turns(22, failing=True)
    made[4:7] = [with_alert(turn, "at the limit") for turn in made[4:7]]
    write(Path("j.sqlite"), made, Event(1000.0, "restarted", "the query\x1b[31m"))
    text = status(capsys)
    assert "turn 20, 1,200 s: FAILED: split 1 -> 2" in text
    assert "but no machine left" in text
    assert "300 s to 420 s, 3 times: at the limit" in text
    assert "1,000 s restarted: the query?[31m" in text
    assert "0 changes applied, 2 failed" in text


def test_a_silent_controller_is_called_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)
    write(Path("j.sqlite"), turns(25), started_at=now - 1500 - 7200, pid=os.getpid())
    shown = json.loads(status(capsys, "--json"))
    assert (shown["state"], shown["says"]) == ("silent", "no turn for 2h: the controller may have stopped")
    assert shown["last_turn_seconds_ago"] == pytest.approx(7200)
    assert "began" in status(capsys)


@pytest.mark.parametrize(
    ("controller", "sentence"),
    [
        (Liveness(State.NEW), "no turn yet"),
        (Liveness(State.RECORDED, 1500.0), "simulated, 25m"),
        (Liveness(State.STOPPED, 0.0, 7200.0), "stopped, last turn 2h ago"),
        (Liveness(State.GONE, 0.0, 3.0, 17), "not running: process 17 is gone, last turn 3s ago"),
        (Liveness(State.RUNNING, 0.0, 3.0), "running, last turn 3s ago"),
        (Liveness(State.RUNNING, 0.0, 0.5), "running, last turn just now"),
    ],
)
def test_the_state_of_a_controller_is_a_sentence(controller: Liveness, sentence: str) -> None:
    assert describe_liveness(controller) == sentence


def test_a_change_without_an_outcome_is_the_last_of_the_changes(capsys: pytest.CaptureFixture[str]) -> None:
    write_pending(Path("j.sqlite"))
    text = status(capsys)
    assert "1 change;" in text
    assert "- turn 10, 600 s: UNFINISHED: split 1 -> 2" in text
    assert "but the controller stopped before this change was finished" in text
    shown = json.loads(status(capsys, "--json"))
    assert (shown["turn"], shown["pending"]["number"], shown["changes"]) == (10, 10, [])


def test_an_interrupted_change_is_counted_and_says_what_ran(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_interrupted(Path("j.sqlite"))
    text = " ".join(status(capsys).split())
    assert "turn 10, 600 s: INTERRUPTED: split 1 -> 2" in text
    assert "finished; when the run was resumed, the application ran as before" in text
    assert "0 changes applied, 0 failed, 1 interrupted" in text


def test_a_run_is_titled_by_its_application(capsys: pytest.CaptureFixture[str]) -> None:
    write(Path("j.sqlite"), turns(1), application="shop")
    assert status(capsys).startswith("shop with sometimes (pipelined)\n")


def test_programs_get_everything_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    made = turns(12)
    observation = made[-1].observation
    parts = replace(observation.application, batch_seconds=2.0, batches=4, batch_parts={"addBatch": 1.5})
    made[-1] = replace(made[-1], observation=replace(observation, application=parts))
    write(Path("j.sqlite"), made)
    shown = json.loads(status(capsys, "--json"))
    assert shown["facts"]["policy"] == "sometimes"
    assert shown["window"]["batch_parts"] == {"addBatch": 1.5}
    assert shown["window"]["operators"]["split"]["parallelism"] == 2
    assert shown["window"]["nodes"][0]["slots"] == 2
    assert shown["whole_run"]["applied"] == 1
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
    observation = made[0].observation
    many = tuple(replace(observation.nodes[0], name=f"n{index}") for index in range(50))
    write(Path("j.sqlite"), [replace(made[0], observation=replace(observation, nodes=many))])
    text = status(capsys)
    assert "38 more" in text
    assert len(text.splitlines()) < 40


def test_each_of_several_queries_is_shown_by_itself(capsys: pytest.CaptureFixture[str]) -> None:
    made = turns(1)[0]
    late = ApplicationMeasures(trigger_seconds=3.0, running_seconds=31.0, tasks_done=12, tasks_left=188)
    queries = {"views": ApplicationMeasures({"1-scan": 20.0}, lag_seconds=4.0), "totals": late}
    observation = replace(made.observation, queries=queries)
    write(Path("j.sqlite"), [replace(made, observation=observation)])
    running = "the running batch has taken 31 s of a trigger of 3 s with 12 of 200 tasks done"
    for text in (" ".join(status(capsys).split()), _explained(capsys)):
        assert "query views: load 20 rows/s, throughput -, lag 4 s" in text
        assert "query totals: load -, throughput -" in text
        assert running in text
    queries = json.loads(status(capsys, "--json"))["window"]["queries"]
    assert queries["totals"]["running_seconds"] == 31.0


def test_what_jvms_do_inside_is_shown_where_it_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    made = turns(1)[0]
    known = replace(made.observation.nodes[0], heap=0.81, gc=0.07, compiling=0.42)
    unknown = replace(known, name="n2", heap=None, gc=None, compiling=None)
    for nodes, columns in (((known, unknown), ["heap", "GC", "warm-up"]), ((unknown,), [])):
        Path("j.sqlite").unlink(missing_ok=True)
        write(Path("j.sqlite"), [replace(made, observation=replace(made.observation, nodes=nodes))])
        for text in (status(capsys), _explain(capsys)):
            rows = [line.split() for line in text.splitlines()]
            header = next(row for row in rows if row[:2] == ["node", "kind"])
            assert header[7:] == columns
            if columns:
                shown = next(row for row in rows if row[:1] == [known.name])
                assert shown[-6:] == ["81", "%", "7", "%", "42", "%"]
            assert max(map(len, text.splitlines())) <= 80


def _explain(capsys: pytest.CaptureFixture[str]) -> str:
    assert call("explain", "1", "--journal", "j.sqlite") == 0
    return capsys.readouterr().out


def _explained(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(_explain(capsys).split())


def test_without_a_path_the_newest_run_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    write(Path(".rheostat/shop/journal.sqlite"), turns(1), application="shop")
    assert call("status") == 0
    assert capsys.readouterr().out.startswith("shop with sometimes")


def test_without_any_run_the_message_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    line = refused(capsys, "status")
    assert "start one with `rheostat run`, or give --journal" in line
    assert refused(capsys, "explain") == line


@pytest.mark.parametrize("command", ["status", "explain"])
def test_anything_but_a_journal_is_refused_in_one_line(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def refusal(name: str) -> str:
        return refused(capsys, command, "--journal", name)

    assert "no such journal" in refusal("nowhere.sqlite")
    Path("folder").mkdir()
    assert "is a folder" in refusal("folder")
    Path("text").write_text("hello" * 1000)
    assert "not a database" in refusal("text")
    Path("empty").touch()
    assert "version 0" in refusal("empty")
    for name, version in (("songs", 3), ("old", 1)):
        db = sqlite3.connect(name)
        db.executescript(f"CREATE TABLE songs (x); PRAGMA user_version = {version};")
        db.close()
    assert "no such table" in refusal("songs")
    assert "a journal of version 1; this Rheostat reads versions 2 and 3" in refusal("old")
    whole = write(Path("whole"), turns(300)).read_bytes()
    Path("truncated").write_bytes(whole[: len(whole) // 2])
    assert "truncated: not a journal that can be used" in refusal("truncated")


def test_a_big_journal_is_read_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    made = turns(1)[0]
    with Journal(Path("j.sqlite")) as journal:
        journal._db.execute("PRAGMA synchronous = OFF")
        for number in range(1, 10_001):
            journal.done(replace(made, number=number))
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
