"""`rheostat trial` without Spark: what it refuses, keeps and shows."""

import signal
import socket
from pathlib import Path

import pytest

from rheostat.cli import trial_page
from rheostat.trials import rounds
from rheostat.trials.contestants import Contestant
from rheostat.trials.report import make_report
from rheostat.trials.trial import Result, Trial
from tests.cli.commands import call, refused, refused_at_once
from tests.trials.results import TRIAL, result

COMMAND = ("trial", "-a", "wordcount", "-c", "sine:duration=3m")


def test_the_terminal_shows_every_measure(capsys: pytest.CaptureFixture[str]) -> None:
    report = make_report(TRIAL, ["ours"], [result("ours"), result("static-peak")])
    trial_page.show_tables(report)
    output = capsys.readouterr().out
    assert all(header in output for header, _, _ in report.columns)
    assert "money" not in output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("-p", "nobody"), "nobody"),
        (("-p", " "), "--policies is empty"),
        (("-p", "ds2", "--peers", "sparkdra"), "sparkdra"),
        (("-p", "ds2", "--mode", "realtime"), "needs --kafka"),
        (("-p", "ds2", "--warm-up", "601"), "--warm-up must be from 0 to 600 s, not 601"),
        (("-p", "ds2", "-c", "sine:lead=5"), "lead is given twice"),
        (("-p", "ds2", "--nodes", "4:1"), "--nodes"),
        (("-p", "ds2", "--trigger", "0"), "--trigger"),
        (("-p", "ds2", "--kafka", "127.0.0.1:1"), "no Kafka broker answers at 127.0.0.1:1"),
        (("-p", "ds2", "--kafka", "nonsense"), "'nonsense' is not a valid broker address"),
        (("-p", "ds2", "-c", "wave"), "wave"),
        (("-p", "ds2", "-a", "wordcont"), "wordcount"),
        (("-p", "ds2", "-a", "none.py"), "no such script"),
        (("-p", "ds2", "--mode", "realtime", "--kafka", "127.0.0.1:1", "--trigger", "3"), "5"),
    ],
)
def test_bad_options_are_refused_before_anything_is_made(
    options: tuple[str, ...],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert message in refused_at_once(capsys, monkeypatch, tmp_path, *COMMAND, *options)


def test_a_folder_of_another_trial_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("trial").mkdir()
    Path("trial/notes.txt").write_text("mine")
    assert "is not empty and holds no trial" in refused(capsys, *COMMAND, "-p", "ds2")
    Path("trial/notes.txt").unlink()
    Path("trial/trial.json").write_text(TRIAL.json())
    assert "holds a trial with other options" in refused(capsys, *COMMAND, "-p", "ds2")


def test_finished_runs_are_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    trial = Trial(**{**TRIAL.__dict__, "trigger_seconds": 3.0, "warm_up_seconds": 40.0})
    for name in ("ds2", "static-peak"):
        kept = Path("trial") / name / "1" / "result.json"
        kept.parent.mkdir(parents=True)
        kept.write_bytes(result(name, nodes=2.0 if name == "ds2" else 4.0).json())
    Path("trial/trial.json").write_text(trial.json())
    options = (
        "-a",
        "wordcount",
        "-c",
        TRIAL.curve,
        "--seed",
        "1",
        "--node",
        "cores=0.5,slots=2",
        "--nodes",
        "1:4",
    )
    assert call("trial", *options, "-p", "ds2", "--peers", "static-peak") == 0
    output = capsys.readouterr().out
    assert "fewer node-seconds than static-peak" in output and "50%" in output
    assert Path("trial/trial.png").read_bytes().startswith(b"\x89PNG")
    assert (
        "![load, throughput, lag, instances and nodes over time](trial.png)"
        in Path("trial/trial.md").read_text()
    )


def test_a_trial_continues_after_an_interrupted_run_and_keeps_a_failed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    ran: list[tuple[str, int]] = []

    def run_contestant(
        _trial: Trial, contestant: Contestant, number: int, folder: Path, _say: object
    ) -> Result:
        ran.append((contestant.name, number))
        folder.mkdir(parents=True)
        (folder / "journal.sqlite").touch()
        if len(ran) == 1:
            signal.raise_signal(signal.SIGINT)
        return (
            Result(contestant.name, number, failure="it died")
            if len(ran) == 2
            else result(contestant.name, number)
        )

    monkeypatch.setattr(rounds, "run_contestant", run_contestant)
    options = (*COMMAND, "-p", "ds2", "--peers", "static-peak")
    assert call(*options) == 130
    assert call(*options) == call(*options) == 0
    assert ran == [("ds2", 1), ("ds2", 1), ("static-peak", 1)]
    assert "ds2 did not run: it died" in capsys.readouterr().out
    assert Path("trial/ds2/1/journal.sqlite").exists()


def test_options_that_no_run_accepts_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def run_contestant(
        _trial: Trial, contestant: Contestant, number: int, _folder: Path, _say: object
    ) -> Result:
        return Result(contestant.name, number, failure="no such broker", refused=True)

    monkeypatch.setattr(rounds, "run_contestant", run_contestant)
    assert "no such broker" in refused(capsys, *COMMAND, "-p", "ds2")
    assert list(Path("trial").iterdir()) == []


def test_another_server_at_the_broker_s_address_is_refused_within_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("rheostat.services.kafka_topics.CHECK_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        address = f"127.0.0.1:{mute.getsockname()[1]}"
        output = refused_at_once(capsys, monkeypatch, tmp_path, *COMMAND, "-p", "ds2", "--kafka", address)
    assert f"no Kafka broker answers at {address}" in output
