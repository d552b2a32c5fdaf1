import json
import os
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
from tests.control.fakes import Divides, OneMore, Sometimes
from tests.journal.samples import turns, with_alert, write, write_interrupted, write_pending


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


def explain(capsys: pytest.CaptureFixture[str], *more: str) -> str:
    assert call("explain", *more, "--journal", "j.sqlite") == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert max(map(len, printed.out.splitlines())) <= 80
    return printed.out


def test_a_change_is_explained_from_measures_to_effect(capsys: pytest.CaptureFixture[str]) -> None:
    write(Path("j.sqlite"), turns(25, takes=5.0))
    text = explain(capsys)
    lines = text.splitlines()
    assert lines[0] == "Turn 20 of words with sometimes (pipelined), decided at 1,205 s: split 2 -> 1"
    assert "  In the 60 s until 1,205 s, on 2 nodes with 4 instances:" in lines
    assert "  The policy said: it is time." in lines
    assert "  - asked of policy: 20, at least 1." in lines
    assert "  - waiting." in lines
    assert "  Nothing: the proposal passed unchanged." in lines
    assert "  Applied: done." in lines
    assert "  It took 5 s, until 1,210 s; the application was paused for 5 s." in lines
    assert "  Expected highest utilisation 0.4; the next 3 windows showed 0.5, 0.5, 0.5." in lines
    assert "  highest utilisation    0.4         0.5   0.5   0.5" in lines
    assert list(dict.fromkeys(line for line in lines if line.startswith(("What", "Expected")))) == [
        "What was measured",
        "What was rejected",
        "What the guards did",
        "What was done",
        "Expected and actual effect",
    ]


def test_a_number_chooses_the_turn_and_a_hold_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    write(Path("j.sqlite"), turns(12))
    assert "split 1 -> 2" in explain(capsys, "10")
    text = explain(capsys, "11")
    assert "Turn 11 of words with sometimes (pipelined), decided at 660 s: nothing was\nchanged" in text
    assert "Nothing: there was no change to check." in text
    assert "Expected and actual effect" not in text


def test_without_any_change_the_latest_turn_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    write(Path("j.sqlite"), turns(3, blind=True))
    text = explain(capsys)
    assert "Turn 3 of" in text
    assert "Not measured: nodes." in text
    assert "The policy said: hold: not measured in this window: nodes." in text


def test_a_veto_is_shown_with_the_proposal(capsys: pytest.CaptureFixture[str]) -> None:
    write(Path("j.sqlite"), turns(3, OneMore(), Guards(cooldown_seconds=600)))
    text = explain(capsys, "2")
    assert "The policy proposed split 2 -> 3. The guards refused it:" in text
    assert "- cool-down: the last change was 60 s ago, less than 600 s." in text


def test_the_effect_of_a_change_ends_with_the_next_change(capsys: pytest.CaptureFixture[str]) -> None:
    write(Path("j.sqlite"), turns(9, Sometimes(every=2)))
    text = explain(capsys, "4")
    assert "the next 2 windows showed" in text
    assert "Then turn 6 made another change." in text


def test_the_newest_change_has_no_window_after_it(capsys: pytest.CaptureFixture[str]) -> None:
    write(Path("j.sqlite"), turns(10))
    text = explain(capsys)
    assert "Expected highest utilisation 0.4." in text
    assert "The journal has no window after this change." in text


def test_a_failed_change_says_what_stopped_it(capsys: pytest.CaptureFixture[str]) -> None:
    write(Path("j.sqlite"), turns(10, failing=True))
    text = explain(capsys)
    assert "decided at 600 s: FAILED:\nsplit 1 -> 2" in text
    assert "FAILED: no machine left." in text
    assert "The application runs as before." in text
    assert "Expected and actual effect" not in text


def test_steps_dry_runs_alerts_and_events_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    made = turns(10, events=(Event(595.0, "executor lost", "3 on n1"),))
    outcome = made[9].outcome
    made[8] = replace(made[9], number=9, outcome=replace(outcome, steps=("started n3", "moved split")))
    dry = replace(outcome, status=Status.DRY_RUN, reason="dry run: would change split 1 -> 2")
    made[9] = with_alert(replace(made[9], outcome=dry), "look out")
    write(Path("j.sqlite"), made)
    text = explain(capsys)
    assert "Nothing, as this was a dry run: would change split 1 -> 2." in text
    assert "It raised an alert: look out." in text
    assert "At 595 s, executor lost: 3 on n1." in text
    assert "  1. started n3.\n  2. moved split.\n" in explain(capsys, "9")


def test_a_policy_that_failed_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    write(Path("j.sqlite"), turns(1, Divides()))
    assert "policy 'divides' failed: ZeroDivisionError" in explain(capsys)


def test_times_are_times_of_day_where_the_start_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    write(Path("j.sqlite"), turns(10), started_at=time.time() - 40 * 86_400)
    assert time.strftime("decided at %Y-", time.localtime(time.time() - 40 * 86_400)) in explain(capsys)


@pytest.mark.parametrize("number", ["0", "13", "999999999999999999999"])
def test_a_number_without_a_turn_is_refused_with_the_range(
    number: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write(Path("j.sqlite"), turns(12))
    line = refused(capsys, "explain", number, "--journal", "j.sqlite")
    assert f"there is no turn {number}; j.sqlite has turns 1 to 12" in line


def test_anything_but_a_number_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert "valid integer" in refused(capsys, "explain", "last")


def test_a_journal_without_turns_has_nothing_to_explain(capsys: pytest.CaptureFixture[str]) -> None:
    write(Path("j.sqlite"), [])
    assert "has no turns yet" in refused(capsys, "explain", "--journal", "j.sqlite")


def test_an_old_change_is_explained_from_its_summary_and_an_old_quiet_turn_not_at_all(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write(Path("j.sqlite"), turns(25))
    with Journal(Path("j.sqlite")) as journal, journal._db:  # as the roll-up does
        journal._db.execute("DELETE FROM details WHERE number <= 12")
        journal._db.execute("DELETE FROM turns WHERE worth = 0 AND number <= 12")
    text = explain(capsys, "10")
    assert "kept only a summary of this decision" in text
    assert "Why: it is time." in text
    assert "highest utilisation    0.5         0.4   0.4   0.4" in text
    assert json.loads(explain(capsys, "10", "--json"))["kept"] == "line"
    assert "turn 5 was rolled up" in refused(capsys, "explain", "5", "--journal", "j.sqlite")


def test_programs_get_the_whole_decision(capsys: pytest.CaptureFixture[str]) -> None:
    write(Path("j.sqlite"), turns(25))
    explained = json.loads(process("rheostat explain 10 --json -j j.sqlite", Path.cwd()).stdout)
    assert (explained["number"], explained["kept"], explained["outcome"]["status"]) == (10, "full", "applied")
    assert explained["causes"][0]["holds"] is True
    assert explained["expected"] == {"highest utilisation": 0.4}
    assert [line["number"] for line in explained["next"]] == [11, 12, 13]


def test_an_edited_turn_that_names_other_operators_is_explained_as_far_as_possible(
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


def test_a_change_without_an_outcome_is_explained_in_plain_words(capsys: pytest.CaptureFixture[str]) -> None:
    write_pending(Path("j.sqlite"))
    text = explain(capsys)
    assert text.startswith("Turn 10 of words with sometimes (pipelined), decided at 600 s: UNFINISHED:")
    assert "The policy said: it is time." in text
    assert "The controller stopped before this change was finished." in text
    assert json.loads(explain(capsys, "--json"))["outcome"] is None
    assert "nothing was" in explain(capsys, "9")
    assert "turns 1 to 10" in refused(capsys, "explain", "11", "--journal", "j.sqlite")


def test_a_change_without_an_outcome_is_under_way_while_its_controller_runs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_pending(Path("j.sqlite"), started_at=time.time() - 602, pid=os.getpid())
    assert "This change is under way." in explain(capsys)


def test_a_stopped_controller_is_to_be_resumed(capsys: pytest.CaptureFixture[str]) -> None:
    write_pending(Path("j.sqlite"), started_at=time.time() - 602, pid=2**22 + 5)
    text = " ".join(explain(capsys).split())
    assert "The controller stopped before this change was finished." in text
    assert "Repeat `rheostat run` with --resume" in text


def test_an_interrupted_change_says_what_ran_after_resuming(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_interrupted(Path("j.sqlite"))
    text = " ".join(explain(capsys).split())
    assert "decided at 600 s: INTERRUPTED: split 1 -> 2" in text
    assert "INTERRUPTED: the controller stopped before this change was finished; when the" in text
    assert "run was resumed, the application ran as before. It was resumed at 700 s." in text
    assert "Expected and actual effect" not in text
