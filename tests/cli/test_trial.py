"""The trial without Spark: who takes part, what is refused, how results are judged and kept."""

import re
import signal
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from rheostat.cli import trial_page
from rheostat.model.configuration import Bounds, NodeKind
from rheostat.model.errors import FileError
from rheostat.trials import rounds
from rheostat.trials.contestants import Contestant, contestant
from rheostat.trials.report import Check, make_report
from rheostat.trials.trial import Result, Trial, read_result
from tests.cli.commands import call, refused, refused_at_once

CONTEST = Trial(
    app="wordcount",
    script=Path("app.py"),
    curve="sine:low=0:high=100:period=100:duration=100",
    seed=1,
    nodes=Bounds(1, 4),
    node=NodeKind(cores=0.5, slots=2),
    mode="microbatch",
    trigger_seconds=2.0,
    period_seconds=5.0,
    cooldown_seconds=5.0,
    warm_up_seconds=0.0,
    partitions=4,
)
TRIAL = ("trial", "-a", "wordcount", "-c", "sine:duration=3m")


def result(
    name: str, number: int = 1, *, nodes: float = 4.0, lag: float = 5.0, served: float = 1.0
) -> Result:
    load = [50.0] * 50 + [100.0] * 50
    return Result(
        contestant=name,
        number=number,
        load=load,
        throughput=[served * rows for rows in load],
        lag=[lag] * 100,
        nodes=[nodes] * 100,
        instances=[2 * nodes] * 100,
        work=[(50.0, 0.7), (100.0, 1.2)],
        startups=[8.0],
        changes=3,
    )


def checks(*results: Result) -> dict[str, Check]:
    report = make_report(CONTEST, ["ours"], results)
    return {check.what: check for check in report.checks}


def test_a_policy_that_saves_enough_and_is_quick_enough_keeps_every_bound() -> None:
    found = checks(result("ours", nodes=2.0), result("static-peak"), result("spark-dra", nodes=3.0, lag=4.0))
    assert [check.kept for check in found.values()] == [True] * 5
    assert found["fewer node-seconds than static-peak"].found == 0.5
    assert found["fewer node-seconds than spark-dra"].found == pytest.approx(1 / 3)
    assert found["p99 lag to spark-dra's"].found == 1.25
    assert found["p99 lag in trigger + control period + node start-up"].found == pytest.approx(5 / 15)


def test_each_bound_can_be_missed() -> None:
    found = checks(
        result("ours", nodes=3.0, lag=31.0, served=0.8),
        result("static-peak"),
        result("spark-dra", nodes=3.5, lag=20.0),
    )
    assert [check.kept for check in found.values()] == [False] * 5
    assert found["throughput degradation"].cells[-1] == "RED"


def test_a_peer_that_began_behind_is_also_judged_from_when_it_had_caught_up() -> None:
    behind = replace(result("spark-dra", lag=2.0), lag=[30.0] * 10 + [2.0] * 90)
    found = checks(result("ours"), result("static-peak"), behind)
    assert found["p99 lag to spark-dra's"].kept
    later = found["the same, from when spark-dra had caught up with its start"]
    assert (later.found, later.kept) == (2.5, False)


def test_ratios_are_taken_within_a_repeat_and_the_median_counts() -> None:
    found = checks(
        *(result("ours", number, nodes=nodes) for number, nodes in enumerate((1.0, 2.0, 2.0), 1)),
        *(result("static-peak", number, nodes=nodes) for number, nodes in enumerate((4.0, 4.0, 8.0), 1)),
    )
    saved = found["fewer node-seconds than static-peak"]
    assert (saved.found, saved.verdict) == (0.75, "ok")


def test_a_square_leaves_no_time_to_act_so_its_lag_is_not_bound() -> None:
    square = make_report(
        Trial(**{**CONTEST.__dict__, "curve": "square:duration=100"}),
        ["ours"],
        [result("ours"), result("static-peak")],
    )
    assert [check.what for check in square.checks] == [
        "fewer node-seconds than static-peak",
        "throughput degradation",
    ]


def test_the_oracle_needs_what_the_nodes_of_the_peak_used() -> None:
    report = make_report(CONTEST, ["ours"], [result("ours", nodes=4.0), result("static-peak")])
    [measures] = report.measures["ours"]
    assert measures.node_seconds_to_oracle == pytest.approx(
        400 / (50 * 2 + 50 * 3)
    )  # 0.7 and 1.2 cores of 0.5
    assert measures.overshoot == pytest.approx(4 / 3 - 1)


def test_the_report_shows_spread_bounds_and_who_did_not_run() -> None:
    failed = Result("spark-dra", 1, failure="it died")
    report = make_report(
        CONTEST,
        ["ours"],
        [result("ours", nodes=2.0), result("ours", 2, nodes=3.0), result("static-peak"), failed],
    )
    text = report.markdown(["trial.png"])
    assert "| ours | 2 | 0.000 |" in text
    assert "250 (200-300)" in text
    assert "\nspark-dra did not run: it died\n" in text
    assert "| ours | fewer node-seconds than static-peak | 50.0% | at least 40.0% | ok so far |" in text
    assert "| ours | fewer node-seconds than spark-dra | no run | at least 25.0% | **RED** |" in text
    assert list(report.series) == ["ours", "static-peak"]
    assert "did not run: it died" in failed.line()


def test_a_failed_repeat_of_one_who_ran_is_named() -> None:
    results = [result("ours"), Result("ours", 2, failure="it died"), Result("ours", 3, failure="it died")]
    report = make_report(CONTEST, ["ours"], results)
    assert report.failed() == ["ours did not run in repeat 2 and 3: it died"]


def test_the_terminal_shows_every_measure(capsys: pytest.CaptureFixture[str]) -> None:
    report = make_report(CONTEST, ["ours"], [result("ours"), result("static-peak")])
    trial_page.show(report)
    told = capsys.readouterr().out
    assert all(header in told for header, _, _ in report.columns)
    assert "money" not in told


def test_who_takes_part() -> None:
    given = Bounds(2, 6)
    assert contestant("static-min").bounds(given) == Bounds(2, 2)
    assert contestant("static-peak").bounds(given) == Bounds(6, 6)
    assert contestant("spark-dra").allocated and contestant("spark-dra").bounds(given) == given
    tried = contestant("ds2(restart_time=5)")
    assert (tried.policy, tried.allocated) == ("ds2(restart_time=5)", False)
    assert re.fullmatch(r"ds2-restart_time=5-[0-9a-f]{6}", tried.folder)
    assert contestant("ds2 (restart_time=5)").folder != tried.folder


def test_results_are_kept(tmp_path: Path) -> None:
    made, path = result("ours"), tmp_path / "result.json"
    path.write_bytes(made.json())
    assert read_result(path) == made
    for spoiled in ('{"contestant": 3}', '{"contestant": "x", "number": 1}', "{", ""):
        path.write_text(spoiled)
        with pytest.raises(FileError, match="is not the result of a trial; delete it"):
            read_result(path)


def test_no_secret_is_kept() -> None:
    given = {"spark.a.password": "hunter22", "spark.b": "seen"}
    kept = Trial(**{**CONTEST.__dict__, "settings": given}).json()
    assert "seen" in kept and "hunter22" not in kept and "password" not in kept


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("-p", "nobody"), "nobody"),
        (("-p", " "), "--policies names none"),
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
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert said in refused_at_once(capsys, monkeypatch, tmp_path, *TRIAL, *options)


def test_a_folder_of_another_trial_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("trial").mkdir()
    Path("trial/notes.txt").write_text("mine")
    assert "is not empty and holds no trial" in refused(capsys, *TRIAL, "-p", "ds2")
    Path("trial/notes.txt").unlink()
    Path("trial/trial.json").write_text(CONTEST.json())
    assert "holds a trial with other options" in refused(capsys, *TRIAL, "-p", "ds2")


def test_results_that_are_there_are_not_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    trial = Trial(**{**CONTEST.__dict__, "trigger_seconds": 3.0, "warm_up_seconds": 40.0})
    for name in ("ds2", "static-peak"):
        kept = Path("trial") / name / "1" / "result.json"
        kept.parent.mkdir(parents=True)
        kept.write_bytes(result(name, nodes=2.0 if name == "ds2" else 4.0).json())
    Path("trial/trial.json").write_text(trial.json())
    options = (
        "-a",
        "wordcount",
        "-c",
        CONTEST.curve,
        "--seed",
        "1",
        "--node",
        "cores=0.5,slots=2",
        "--nodes",
        "1:4",
    )
    assert call("trial", *options, "-p", "ds2", "--peers", "static-peak") == 0
    told = capsys.readouterr().out
    assert "fewer node-seconds than static-peak" in told and "50%" in told
    assert Path("trial/trial.png").read_bytes().startswith(b"\x89PNG")
    assert (
        "![load, throughput, lag, instances and nodes over time](trial.png)"
        in Path("trial/trial.md").read_text()
    )


def test_a_trial_goes_on_after_an_interrupted_run_and_keeps_one_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    ran: list[tuple[str, int]] = []

    def run_one(_contest: Trial, one: Contestant, number: int, folder: Path, _say: object) -> Result:
        ran.append((one.name, number))
        folder.mkdir(parents=True)
        (folder / "journal.sqlite").touch()
        if len(ran) == 1:
            signal.raise_signal(signal.SIGINT)
        return Result(one.name, number, failure="it died") if len(ran) == 2 else result(one.name, number)

    monkeypatch.setattr(rounds, "run_one", run_one)
    options = (*TRIAL, "-p", "ds2", "--peers", "static-peak")
    assert call(*options) == 130
    assert call(*options) == call(*options) == 0
    assert ran == [("ds2", 1), ("ds2", 1), ("static-peak", 1)]
    assert "ds2 did not run: it died" in capsys.readouterr().out
    assert Path("trial/ds2/1/journal.sqlite").exists()


def test_options_that_no_run_can_have_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def run_one(_contest: Trial, one: Contestant, number: int, _folder: Path, _say: object) -> Result:
        return Result(one.name, number, failure="no such broker", refused=True)

    monkeypatch.setattr(rounds, "run_one", run_one)
    assert "no such broker" in refused(capsys, *TRIAL, "-p", "ds2")
    assert list(Path("trial").iterdir()) == []


def test_something_else_that_listens_at_the_broker_s_address_is_refused_within_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("rheostat.services.kafka_topics.ASKED_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        address = f"127.0.0.1:{mute.getsockname()[1]}"
        told = refused_at_once(capsys, monkeypatch, tmp_path, *TRIAL, "-p", "ds2", "--kafka", address)
    assert f"no Kafka broker answers at {address}" in told


def test_nodes_with_a_price_are_counted_in_money_too() -> None:
    priced = replace(CONTEST, node=replace(CONTEST.node, price_per_hour=3.6))
    report = make_report(priced, ["ours"], [result("ours", nodes=2.0), result("static-peak")])
    [measures] = report.measures["ours"]
    assert measures.money == pytest.approx(2 * 100 * 3.6 / 3600)
    assert any("| money |" in line for line in report.tables())
