"""`rheostat profile` on the journals of simulated runs."""

import json
from pathlib import Path

import pytest

from rheostat.cli.main import run
from rheostat.journal.store import Journal

SINE = "sine:low=1000:high=9000:period=30m:duration=2h"


def call(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ended:
        run(list(map(str, arguments)))
    return int(ended.value.code or 0)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two runs of a word count, and one of another application."""
    folder = tmp_path_factory.mktemp("runs")
    for name, topology in (("one", "wordcount"), ("two", "wordcount"), ("other", "linear")):
        curve = SINE if topology == "wordcount" else "sine:low=20:high=200:period=30m:duration=2h"
        assert call("simulate", "-t", topology, "-c", curve, "-p", "elysium", "--out", folder / name) == 0
    return folder


def test_a_run_teaches_the_costs_that_its_world_was_made_with(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("profile", runs / "one", "--json") == 0
    learned = json.loads(capsys.readouterr().out)
    split = learned["instances"]["split"]
    assert split["curve"] == "line"
    assert split["state"]["slope"] == pytest.approx(0.002, rel=0.02)  # the cost in the topology's file
    assert learned["judged"]["split"]["error"] < 0.01
    [stream] = [s for s in learned["selectivity"] if s["upstream"] == "split"]
    assert stream["mean"] == pytest.approx(8.0, rel=0.01)
    assert learned["changes"]["node start"]["fixed"] > 1.0


def test_a_profile_is_saved_judged_on_another_run_and_drawn(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "words.json"
    assert call("profile", runs / "one", "--save", saved, "--out", tmp_path / "plot") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "the last 30% of the windows, which it never saw" in shown
    assert (tmp_path / "plot" / "profile.png").read_bytes().startswith(b"\x89PNG")
    assert call("profile", runs / "two", "--against", saved) == 0
    assert "all windows of this run" in " ".join(capsys.readouterr().out.split())


def test_several_runs_teach_together(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("profile", runs / "one", "--json") == 0
    alone = json.loads(capsys.readouterr().out)["windows"]
    assert call("profile", runs / "one", runs / "two", "--json") == 0
    assert json.loads(capsys.readouterr().out)["windows"] == 2 * alone


def test_a_profile_of_another_topology_is_refused_with_the_reason(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "words.json"
    assert call("profile", runs / "one", "--save", saved) == 0
    assert call("profile", runs / "other", "--against", saved) == 2
    assert "the profile is of wordcount with the operators" in capsys.readouterr().err
    assert call("profile", runs / "one", runs / "other", "--save", tmp_path / "both.json") == 2
    assert "profile each by itself" in capsys.readouterr().err
    assert not (tmp_path / "both.json").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda known: known.update(version=7), "version 7 of a profile is not known here"),
        (lambda known: known["instances"]["split"].update(curve="spline"), "unknown curve 'spline'"),
        (lambda known: known["instances"]["split"].update(state={"rest": "x"}), "the line cannot be read"),
        (lambda known: known.update(more=1), "unknown key"),
    ],
)
def test_a_broken_profile_is_named_in_one_line(
    change: object, message: str, runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "words.json"
    assert call("profile", runs / "one", "--save", saved) == 0
    known = json.loads(saved.read_text())
    change(known)  # type: ignore[operator]
    saved.write_text(json.dumps(known))
    capsys.readouterr()
    assert call("profile", runs / "one", "--against", saved) == 2
    told = capsys.readouterr().err
    assert message in told
    assert len(told.splitlines()) == 1


def test_a_journal_without_a_window_teaches_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Journal(tmp_path / "journal.sqlite") as journal:
        journal.describe({"application": "new"})
    assert call("profile", tmp_path) == 2
    assert "has no window yet" in capsys.readouterr().err


def test_saving_needs_learning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("profile", "--against", tmp_path / "a.json", "--save", tmp_path / "b.json") == 2
    assert "omit one of them" in capsys.readouterr().err
