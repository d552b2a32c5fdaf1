import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from rheostat.cli.chart import chart
from rheostat.cli.main import run
from rheostat.workloads import curve_names

SHAPES = [name for name in curve_names() if name != "trace"]


def _run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        run(["load", *arguments])
    return int(ended.value.code or 0)


@pytest.mark.parametrize("name", SHAPES)
def test_every_curve_is_shown_within_80_columns(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("show", name, "--width", "80") == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    for word in ("rows/s", "min ", "mean ", "peak ", "duration "):
        assert word in shown


def test_the_axes_are_labelled_with_rates_and_times(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("show", "sine", "--width", "80") == 0
    shown = capsys.readouterr().out
    for label in ("1,000 ┤", "500 ┤", "0 ┤", "10m", "30m", "peak 1,000 rows/s"):
        assert label in shown


def test_json_holds_a_summary_and_at_most_a_thousand_points(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("show", "day", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["summary"]["duration_seconds"] == 86_400
    assert shown["summary"]["peak"] == pytest.approx(1000)
    assert len(shown["times"]) == len(shown["rates"]) == 1000
    assert shown["times"][-1] == 86_400


def test_the_seed_decides_the_noise(capsys: pytest.CaptureFixture[str]) -> None:
    observed = []
    for seed in ("1", "1", "2"):
        assert _run("show", "sine:noise=poisson", "--json", "--seed", seed) == 0
        observed.append(json.loads(capsys.readouterr().out)["rates"])
    assert observed[0] == observed[1] != observed[2]


@pytest.mark.parametrize(("suffix", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml")])
def test_a_figure_is_drawn_on_request(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], suffix: str, start: bytes
) -> None:
    picture = tmp_path / f"day.{suffix}"
    assert _run("show", "day", "--out", str(picture)) == 0
    assert picture.read_bytes().startswith(start)
    assert f"plot saved to {picture}" in capsys.readouterr().out


def test_the_list_names_every_curve_with_its_defaults_and_paper(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("list") == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in curve_names())
    assert "(P3 5.1)" in shown
    assert "high=16000" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_the_list_is_json_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("list", "--json") == 0
    listed = {curve["name"]: curve for curve in json.loads(capsys.readouterr().out)}
    assert list(listed) == curve_names()
    assert listed["bursty"]["keys"]["compress"] == 60


def test_a_written_trace_is_shown_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bursty.csv"
    assert _run("write", "bursty", "--out", str(path), "--step", "1") == 0
    assert "1,441 rows" in capsys.readouterr().out
    assert _run("show", f"trace:{path}") == 0
    assert "peak 1,000 rows/s   duration 24m" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "snie"], "did you mean 'sine'?"),
        (["show", "sine:period=0"], "period must be"),
        (["show", "sine", "--out", "sine.gif"], "only draw .png and .svg"),
        (["show", "sine", "--out", "nowhere/sine.png"], "nowhere/sine.png: cannot be written"),
        (["show", "sine", "--width", "3"], "--width"),
        (["show", "trace:nowhere.csv"], "nowhere.csv: cannot be read"),
        (["write", "sine", "--out", "nowhere/sine.csv"], "cannot be written"),
        (["write", "sine", "--out", "sine.csv", "--step", "0"], "step of 0 s"),
        (["write", "sine"], "--out"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(*arguments) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert message in output.err
    assert len(output.err.splitlines()) == 1


@pytest.mark.parametrize("command", ["show", "list", "write"])
def test_help_has_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(command, "--help") == 0
    assert f"rheostat load {command}" in capsys.readouterr().out


def test_load_alone_prints_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run() == 0
    output = capsys.readouterr()
    assert "write" in output.out
    assert output.err == ""


def test_matplotlib_is_only_loaded_to_draw() -> None:
    code = "import sys, rheostat.cli.load; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_chart_shows_a_spike_of_one_sample_among_many() -> None:
    values = np.zeros(100_000)
    values[54_321] = 100.0
    drawn = chart([("load", values)], np.arange(100_000.0), 80, 12, "rows/s").splitlines()
    assert drawn[1].startswith("100 ┤")
    assert any("\u2800" < mark <= "\u28ff" for mark in drawn[1])


def test_a_chart_distinguishes_two_series() -> None:
    x = np.arange(60.0)
    drawn = chart([("load", x), ("capacity", np.full(60, 50.0))], x, 60, 10, "rows/s")
    assert drawn.splitlines()[-1].split() == ["⠶", "load", "×", "capacity"]
    assert "×××" in drawn
