import csv
import json
from pathlib import Path

import pytest

from rheostat.journal.store import Journal
from tests.cli.commands import call, process, refused

CURVE = "step:duration=10m:low=100:high=600"


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


def simulate(*more: str, policy: str = "threshold", curve: str = CURVE) -> int:
    return call("simulate", "-t", "linear", "-c", curve, "-p", policy, *more)


def test_a_run_leaves_a_journal_a_series_and_a_plot(capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate("--json", "--out", "run") == 0
    output = json.loads(capsys.readouterr().out)
    assert sorted(path.name for path in Path("run").iterdir()) == [
        "journal.sqlite",
        "series.csv",
        "simulation.png",
        "simulation.svg",
    ]
    with Journal(Path(output["journal"])) as journal:
        turns = list(journal.turns())
        assert journal.facts()["curve"] == CURVE
    changes = [turn for turn in turns if turn.plan.changes]
    assert len(output["decisions"]) == len(changes) > 0
    assert output["decisions"][0]["reason"] == changes[0].plan.reason
    with Path(output["series"]).open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 600
    assert {float(row["load"]) for row in rows} >= {100.0, 600.0}
    mean = sum(float(row["nodes"]) for row in rows) / 600
    assert output["measures"]["mean_nodes"] == pytest.approx(mean)


def test_the_same_seed_gives_the_same_run(capsys: pytest.CaptureFixture[str]) -> None:
    measures = []
    noisy = ["--json", "--set", "noise=0.2"]
    for folder, seed in (("a", "7"), ("b", "7"), ("c", "8")):
        assert simulate(*noisy, "--out", folder, "--seed", seed, curve=f"{CURVE}:noise=poisson") == 0
        measures.append(json.loads(capsys.readouterr().out)["measures"])
    assert measures[0] == measures[1] != measures[2]


def test_the_output_shows_the_measures_and_the_reason_of_each_change(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert simulate() == 0
    output = capsys.readouterr()
    assert output.err == ""
    assert "degraded   lag p99 lag saved x oracle changes settling overshoot" in output.out
    assert "because one step: utilisation of" in output.out
    assert "record: simulation/journal.sqlite" in output.out
    assert max(map(len, output.out.splitlines())) <= 80


@pytest.mark.parametrize("mode", ["pipelined", "staged", "storm"])
def test_a_run_without_any_load_is_judged(mode: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate("--json", "--mode", mode, policy="ds2", curve="constant:rate=0:duration=3m") == 0
    measures = json.loads(capsys.readouterr().out)["measures"]
    assert measures["throughput_degradation"] == 0.0
    assert measures["mean_lag_seconds"] == 0.0


def test_a_folder_with_brackets_and_dollars_is_a_folder(capsys: pytest.CaptureFixture[str]) -> None:
    Path("$x$_[b].csv").write_text("time,rate\n0,100\n60,100\n")
    assert simulate("--out", "$[/b]", curve="trace:$x$_[b].csv") == 0
    assert "record: $[/b]/journal.sqlite" in capsys.readouterr().out
    assert Path("$[/b]/simulation.png").exists()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["-t", "linaer"], "did you mean 'linear'?"),
        (["-t", "nowhere.json"], "nowhere.json: cannot be read"),
        (["-c", "snie"], "did you mean 'sine'?"),
        (["-c", "sine:period=0"], "period"),
        (["-c", "constant:duration=300d"], "longer than a week of steps"),
        (["-c", "trace:nowhere.csv"], "nowhere.csv"),
        (["-p", "elysum"], "did you mean 'elysium'?"),
        (["-p", "ds2("], "cannot read policy"),
        (["-p", "ds2(restart_tim=1)"], "did you mean 'restart_time'?"),
        (["-p", "ds2(restart_time=soon)"], "must be a number"),
        (["-p", "ds2(restart_time=inf)"], "must be finite"),
        (["-p", "ds2(period_seconds=0)"], "period_seconds"),
        (["-p", "ds2(period_seconds=-1)"], "period_seconds"),
        (["-p", "ds2(period_seconds=0.1)"], "period_seconds"),
        (["-p", "static(provision=most)"], "provision must be"),
        (["-p", "multilevel(map=nowhere.json)"], "nowhere.json: cannot be read"),
        (["-m", "stagd"], "did you mean 'staged'?"),
        (["--seed", "-1"], "--seed"),
        (["--seed", "x"], "--seed"),
        (["--nodes", "0:5"], "--nodes"),
        (["--nodes", "5:1"], "--nodes"),
        (["--nodes", "1:1000000"], "--nodes"),
        (["--nodes", "many"], "--nodes"),
        (["--nodes", "1:1"], "instances need one each"),
        (["--node", "cores=0"], "--node cores"),
        (["--node", "cores=nan"], "--node cores"),
        (["--node", "cores=0.01"], "leave no CPU for work"),
        (["--node", "executors=99"], "leave no CPU for work"),
        (["--node", "slots=1.5"], "whole number"),
        (["--node", "slots=1e9"], "--node slots"),
        (["--node", "startup_seconds=1e9"], "--node startup_seconds"),
        (["--node", "cpus=4"], "unknown key"),
        (["--node", "cores"], "--node cores"),
        (["--set", "nois=1"], "did you mean 'noise'?"),
        (["--set", "noise"], "write it as noise=VALUE"),
        (["--set", "noise=-1"], "--set noise"),
        (["--set", "noise=100"], "--set noise"),
        (["--set", "step_seconds=0"], "--set step_seconds"),
        (["--set", "step_seconds=300"], "--set step_seconds"),
        (["--set", "trigger_seconds=0"], "--set trigger_seconds"),
        (["--set", "overhead=0.5"], "--set overhead"),
        (["--set", "on_full=explode"], "hold or drop"),
        (["--set", "seed=1"], "unknown setting"),
    ],
)
def test_a_mistake_is_refused_before_anything_is_written(
    more: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = {"-t": "linear", "-c": CURVE, "-p": "ds2"}
    options.update(dict(zip(more[::2], more[1::2], strict=True)))
    line = refused(capsys, "simulate", *(word for pair in options.items() for word in pair), "--out", "made")
    assert message in line
    assert list(tmp_path.iterdir()) == []


def test_an_existing_journal_is_never_overwritten(capsys: pytest.CaptureFixture[str]) -> None:
    Path("run").mkdir()
    Path("run/journal.sqlite").write_text("precious")
    line = refused(capsys, "simulate", "-t", "linear", "-c", CURVE, "-p", "static", "-o", "run")
    assert "run/journal.sqlite exists already" in line
    assert Path("run/journal.sqlite").read_text() == "precious"
    assert len(list(Path("run").iterdir())) == 1


@pytest.mark.parametrize("out", ["file", "file/inside", "/proc/nowhere", "x" * 300])
def test_a_folder_that_cannot_be_created_is_refused(out: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("file").write_text("precious")
    line = refused(capsys, "simulate", "-t", "linear", "-c", CURVE, "-p", "static", "-o", out)
    assert "cannot be created" in line
    assert Path("file").read_text() == "precious"


def test_a_file_system_that_refuses_files_is_a_one_line_error(capsys: pytest.CaptureFixture[str]) -> None:
    line = refused(capsys, "simulate", "-t", "linear", "-c", CURVE, "-p", "static", "-o", "/proc")
    assert "/proc" in line


def test_a_pipe_gets_json_and_nothing_else(tmp_path: Path) -> None:
    line = f"rheostat simulate -t linear -c {CURVE} -p static --json"
    done = process(line, tmp_path, FORCE_COLOR="1", NO_COLOR="1")
    assert (done.returncode, "\x1b" in done.stdout) == (0, False)
    assert json.loads(done.stdout)["policy"] == "static"


@pytest.mark.parametrize("mode", ["pipelined", "staged", "storm"])
def test_rows_that_cost_next_to_nothing_need_one_node(mode: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("tiny.yaml").write_text(
        "name: tiny\noperators:\n"
        "- {name: a, cost: 5.0e-324, selectivity: 1.0e+6, children: {b: 1}}\n"
        "- {name: b, cost: 5.0e-324}\n"  # 1e15 rows/s
    )
    options = ("-t", "tiny.yaml", "-c", "constant:rate=1e9:duration=5m", "-p", "static", "-m", mode)
    assert call("simulate", *options, "--node", "slots=4", "--json") == 0
    assert json.loads(capsys.readouterr().out)["measures"]["node_seconds_to_oracle"] == 1
