import json
import sqlite3
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from rheostat.control.guards import Guards
from rheostat.journal.store import Journal
from rheostat.model.decision import Status
from rheostat.model.observation import Event
from tests.cli.commands import call, process, refused
from tests.cli.journals import turns, with_alert, write
from tests.control.fakes import Divides, OneMore, Sometimes


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


def explain(capsys: pytest.CaptureFixture[str], *more: str) -> str:
    assert call("explain", *more, "--journal", "j.sqlite") == 0
    told = capsys.readouterr()
    assert told.err == ""
    assert max(map(len, told.out.splitlines())) <= 80
    return told.out


def test_a_change_is_told_from_measures_to_what_it_brought(capsys: pytest.CaptureFixture[str]) -> None:
    write(Path("j.sqlite"), turns(25, takes=5.0))
    told = explain(capsys)
    lines = told.splitlines()
    assert lines[0] == "Turn 20 of words with sometimes (pipelined), decided at 1,205 s: split 2 -> 1"
    assert "  In the 60 s until 1,205 s, on 2 nodes with 4 instances:" in lines
    assert "  The policy said: it is time." in lines
    assert "  - asked of policy: 20, at least 1." in lines
    assert "  - waiting." in lines
    assert "  Nothing: the wish passed as it was." in lines
    assert "  Applied: done." in lines
    assert "  It took 5 s, until 1,210 s; the application stood still for 5 s." in lines
    assert "  Expected highest utilisation 0.4; the next 3 windows showed 0.5, 0.5, 0.5." in lines
    assert "  highest utilisation    0.4         0.5   0.5   0.5" in lines
    assert list(dict.fromkeys(line for line in lines if line.startswith("What"))) == [
        "What was seen",
        "What was rejected",
        "What the guards did",
        "What was done",
        "What it was to bring, and what it brought",
    ]


def test_a_number_chooses_the_turn_and_a_held_one_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    write(Path("j.sqlite"), turns(12))
    assert "split 1 -> 2" in explain(capsys, "10")
    told = explain(capsys, "11")
    assert "Turn 11 of words with sometimes (pipelined), decided at 660 s: nothing was\nchanged" in told
    assert "Nothing: there was no change to check." in told
    assert "What it was to bring" not in told


def test_without_any_change_the_latest_turn_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    write(Path("j.sqlite"), turns(3, blind=True))
    told = explain(capsys)
    assert "Turn 3 of" in told
    assert "Not measured: nodes." in told
    assert "The policy said: hold: not measured in this window: nodes." in told


def test_a_veto_is_told_with_the_wish(capsys: pytest.CaptureFixture[str]) -> None:
    write(Path("j.sqlite"), turns(3, OneMore(), Guards(cooldown_seconds=600)))
    told = explain(capsys, "2")
    assert "The policy wished split 2 -> 3. They refused it:" in told
    assert "- cool-down: the last change was 60 s ago, less than 600 s." in told


def test_what_a_change_brought_ends_with_the_next_change(capsys: pytest.CaptureFixture[str]) -> None:
    write(Path("j.sqlite"), turns(9, Sometimes(every=2)))
    told = explain(capsys, "4")
    assert "the next 2 windows showed" in told
    assert "Then turn 6 changed it again." in told


def test_the_newest_change_has_no_window_after_it(capsys: pytest.CaptureFixture[str]) -> None:
    write(Path("j.sqlite"), turns(10))
    told = explain(capsys)
    assert "Expected highest utilisation 0.4." in told
    assert "The journal has no window after it." in told


def test_a_failed_change_says_what_stopped_it(capsys: pytest.CaptureFixture[str]) -> None:
    write(Path("j.sqlite"), turns(10, failing=True))
    told = explain(capsys)
    assert "decided at 600 s: FAILED:\nsplit 1 -> 2" in told
    assert "FAILED: no machine left." in told
    assert "The application runs as before." in told
    assert "What it was to bring" not in told


def test_steps_dry_runs_alerts_and_events_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    made = turns(10, events=(Event(595.0, "executor lost", "3 on n1"),))
    outcome = made[9].outcome
    made[8] = replace(made[9], number=9, outcome=replace(outcome, steps=("started n3", "moved split")))
    dry = replace(outcome, status=Status.DRY_RUN, reason="dry run: would change split 1 -> 2")
    made[9] = with_alert(replace(made[9], outcome=dry), "look out")
    write(Path("j.sqlite"), made)
    told = explain(capsys)
    assert "Nothing, as this was a dry run: would change split 1 -> 2." in told
    assert "It raised an alert: look out." in told
    assert "At 595 s, executor lost: 3 on n1." in told
    assert "  1. started n3.\n  2. moved split.\n" in explain(capsys, "9")


def test_a_policy_that_failed_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    write(Path("j.sqlite"), turns(1, Divides()))
    assert "policy 'divides' failed: ZeroDivisionError" in explain(capsys)


def test_times_are_the_wall_clocks_where_the_start_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    write(Path("j.sqlite"), turns(10), started_at=time.time() - 40 * 86_400)
    assert time.strftime("decided at %Y-", time.localtime(time.time() - 40 * 86_400)) in explain(capsys)


@pytest.mark.parametrize("number", ["0", "13", "999999999999999999999"])
def test_a_number_that_is_no_turn_is_refused_with_the_range(
    number: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write(Path("j.sqlite"), turns(12))
    line = refused(capsys, "explain", number, "--journal", "j.sqlite")
    assert f"there is no turn {number}; j.sqlite has turns 1 to 12" in line


def test_what_is_no_number_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert "valid integer" in refused(capsys, "explain", "last")


def test_a_journal_without_turns_has_nothing_to_explain(capsys: pytest.CaptureFixture[str]) -> None:
    write(Path("j.sqlite"), [])
    assert "has no turns yet" in refused(capsys, "explain", "--journal", "j.sqlite")


def test_of_an_old_change_the_line_is_told_and_of_an_old_quiet_turn_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write(Path("j.sqlite"), turns(25))
    with Journal(Path("j.sqlite")) as journal, journal._db:  # as the roll-up does
        journal._db.execute("DELETE FROM details WHERE number <= 12")
        journal._db.execute("DELETE FROM turns WHERE worth = 0 AND number <= 12")
    told = explain(capsys, "10")
    assert "kept only the line of this decision" in told
    assert "Why: it is time." in told
    assert "highest utilisation    0.5         0.4   0.4   0.4" in told
    assert json.loads(explain(capsys, "10", "--json"))["kept"] == "line"
    assert "turn 5 was rolled up" in refused(capsys, "explain", "5", "--journal", "j.sqlite")


def test_programs_get_the_whole_decision(capsys: pytest.CaptureFixture[str]) -> None:
    write(Path("j.sqlite"), turns(25))
    told = json.loads(process("rheostat explain 10 --json -j j.sqlite", Path.cwd()).stdout)
    assert (told["number"], told["kept"], told["outcome"]["status"]) == (10, "full", "applied")
    assert told["causes"][0]["holds"] is True
    assert told["expected"] == {"highest utilisation": 0.4}
    assert [line["number"] for line in told["next"]] == [11, 12, 13]


def test_an_edited_turn_that_names_other_operators_is_told_as_far_as_it_goes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write(Path("j.sqlite"), turns(12))
    with closing(sqlite3.connect("j.sqlite")) as db:
        (text,) = db.execute("SELECT turn FROM details WHERE number = 10").fetchone()
        turn = json.loads(text)
        turn["evaluation"]["operators"]["other"] = turn["evaluation"]["operators"].pop("split")
        db.execute("UPDATE details SET turn = ? WHERE number = 10", (json.dumps(turn),))
        db.commit()
    other = next(line for line in explain(capsys, "10").splitlines() if line.startswith("  other "))
    assert other.split()[:2] == ["other", "-"]
