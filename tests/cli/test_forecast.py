import json
from pathlib import Path

import pytest

from rheostat.workloads.curve import sample
from rheostat.workloads.grammar import parse_curve
from tests.cli.commands import call, refused

SINE = "sine:duration=3h:period=15m:noise=poisson"


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


def backtest(*arguments: str) -> int:
    return call("forecast", "backtest", *arguments)


def write_trace(name: str, curve: str, step: float = 60.0) -> None:
    rates = sample(parse_curve(curve), step)
    lines = [f"{step * number:g},{rate:g}" for number, rate in enumerate(rates.tolist())]
    Path(name).write_text("\n".join(["time,rate", *lines]) + "\n")


def test_the_table_has_error_band_and_cost_and_says_that_following_is_simulated(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert backtest(SINE, "--methods", "last,ar") == 0
    output = capsys.readouterr()
    for word in (
        "error 1m",
        "held 1m",
        "x oracle",
        "p99 lag",
        "cost",
        "simulated",
        "\nnone ",
        "\nlast ",
        "\nar ",
    ):
        assert word in output.out
    assert "cheapest to follow: ar" in output.out
    assert max(map(len, output.out.splitlines())) <= 80
    assert output.err == ""
    assert Path("forecast/sine.png").read_bytes().startswith(b"\x89PNG")


def test_json_has_every_measure(capsys: pytest.CaptureFixture[str]) -> None:
    assert backtest(SINE, "--methods", "last,ar,network", "--json", "--out", "made") == 0
    [result] = json.loads(capsys.readouterr().out)
    assert (result["load"], result["step_seconds"], result["cheapest"]) == (SINE, 60.0, "ar")
    assert (result["trained_steps"], result["judged_steps"]) == (126, 54)
    ar = result["methods"]["ar"]
    assert ar["error"]["5"] < 0.1 < result["methods"]["last"]["error"]["5"]
    assert ar["simulated"]["node_seconds_to_oracle"] < 1.3
    assert 0.7 <= ar["held"]["1"] <= 1.0
    assert result["methods"]["none"]["error"] is None
    assert [Path(file).name for file in result["files"]] == ["sine.png", "sine.network.json"]


def test_a_file_and_a_curve_are_judged_one_after_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    write_trace("load.csv", SINE)
    assert backtest("load.csv", "trace:load.csv:scale=2", SINE, "--methods", "last") == 0
    assert capsys.readouterr().out.count("cheapest to follow") == 3
    made = sorted(path.name for path in Path("forecast").iterdir())
    assert made == ["load-2.png", "load.png", "sine.png"]


def test_a_coarse_trace_is_judged_at_its_own_steps(capsys: pytest.CaptureFixture[str]) -> None:
    write_trace("coarse.csv", "sine:duration=20h:period=2h", step=300.0)
    assert backtest("coarse.csv", "--methods", "last", "--train", "0.5") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "119 steps of 5m judged" in shown
    assert "error 5m 25m 1h15m" in shown


def test_a_saved_network_is_a_forecast_for_the_next_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert backtest(SINE, "--methods", "network", "--json") == 0
    trained = json.loads(capsys.readouterr().out)[0]["files"][1]
    spec = f"network:{trained}"
    assert call("policies") == 0
    options = ["-t", "linear", "-c", "sine:duration=30m", "--json"]
    assert call("compare", *options, "-p", f"elysium(proactive=true,forecast={spec})") == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Missing argument"),
        (["nowhere.csv"], "nowhere.csv: cannot be read"),
        (["snie"], "did you mean 'sine'?"),
        ([SINE, "--methods", "lats"], "did you mean 'last'?"),
        ([SINE, "--methods", ","], "--methods is empty"),
        ([SINE, "--methods", "last,last"], "names a method twice"),
        ([SINE, "--methods", "network:nowhere.json"], "cannot be read"),
        ([SINE, "--train", "1"], "--train must be between 0 and 1"),
        ([SINE, "--train", "nan"], "--train must be between 0 and 1"),
        ([SINE, "--step", "0"], "--step must be"),
        ([SINE, "--step", "1800"], "at least 45 are needed"),
        (["sine:duration=366d", "--step", "1"], "give a longer --step"),
        (["constant:rate=0:duration=3h"], "zero throughout"),
        ([SINE, "sine:duration=5m"], "at least 45 are needed"),
        ([SINE, "--methods", "network", "--train", "0.2"], "at least 45 are needed"),
        ([SINE, "--seed", "-1"], "--seed"),
    ],
)
def test_a_mistake_is_one_line_and_writes_nothing(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in refused(capsys, "forecast", "backtest", *arguments)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_created_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("file").write_text("precious")
    assert "cannot be created" in refused(capsys, "forecast", "backtest", SINE, "-o", "file")
    assert Path("file").read_text() == "precious"
