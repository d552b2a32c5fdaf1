import json
from pathlib import Path

import pytest

from tests.cli.commands import call, process, refused

CURVE = "step:duration=10m:low=100:high=600"
HEADINGS = "degraded lag p99 lag saved x oracle changes settling overshoot"


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


def compare(policies: str, *more: str, curve: str = CURVE) -> int:
    return call("compare", "-t", "linear", "-c", curve, "-p", policies, *more)


def test_policies_are_judged_on_the_same_load(capsys: pytest.CaptureFixture[str]) -> None:
    assert compare("static, static(provision=min), threshold", "--json", "--out", "made") == 0
    output = json.loads(capsys.readouterr().out)
    assert list(output["policies"]) == ["static", "static(provision=min)", "threshold"]
    measures = output["policies"]
    assert measures["static"]["reconfigurations"] == 0
    assert measures["static"]["nodes_saved"] == 0.0
    assert measures["static(provision=min)"]["nodes_saved"] > 0
    assert measures["static(provision=min)"]["mean_lag_seconds"] > measures["static"]["mean_lag_seconds"]
    assert measures["threshold"]["reconfigurations"] > 0
    assert [Path(plot).name for plot in output["plots"]] == ["comparison.png", "comparison.svg"]
    assert Path(output["plots"][0]).read_bytes().startswith(b"\x89PNG")


def test_the_table_keeps_its_nine_headings_at_80_columns_whatever_the_names(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert compare("static,threshold,ds2(restart_time=5,utilization_target=0.7)") == 0
    output = capsys.readouterr()
    lines = output.out.splitlines()
    assert " ".join(lines[1].split()) == f"policy {HEADINGS}"
    assert max(map(len, lines)) <= 80
    assert output.err == ""
    assert "plot: comparison/comparison.png and comparison.svg" in output.out


def test_a_run_without_steps_has_no_settling_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert compare("static", "--json", curve="constant:duration=2m") == 0
    assert json.loads(capsys.readouterr().out)["policies"]["static"]["settling_seconds"] is None


@pytest.mark.parametrize(
    ("policies", "message"),
    [
        ("", "is empty"),
        (" , ,", "is empty"),
        ("static,static", "names a policy twice"),
        ("static,elysum", "did you mean 'elysium'?"),
        ("static,ds2(", "cannot read policy"),
        ("static)),((ds2", "cannot read policy"),
        ("static,ds2(period_seconds=0)", "period_seconds"),
        ("static,multilevel(containers=pods)", "containers must be"),
    ],
)
def test_bad_policies_are_refused_before_anything_is_written(
    policies: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in refused(capsys, "compare", "-t", "linear", "-c", CURVE, "-p", policies)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["-t", "nowhere.yaml"], "nowhere.yaml"),
        (["-c", "constant:rate=-1"], "rate"),
        (["-m", "batch"], "unknown mode"),
        (["--nodes", "1:1"], "instances need one each"),
        (["--node", "cores=0"], "--node cores"),
        (["--set", "what=1"], "unknown setting"),
    ],
)
def test_bad_settings_are_refused_before_anything_is_written(
    more: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = {"-t": "linear", "-c": CURVE, "-p": "static,ds2", **dict([more])}
    assert message in refused(capsys, "compare", *(word for pair in options.items() for word in pair))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("out", ["file", "file/inside", "/proc/nowhere"])
def test_a_folder_that_cannot_be_created_is_refused(out: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("file").write_text("precious")
    line = refused(capsys, "compare", "-t", "linear", "-c", CURVE, "-p", "static", "-o", out)
    assert "cannot be created" in line


def test_a_file_system_that_refuses_files_is_a_one_line_error(capsys: pytest.CaptureFixture[str]) -> None:
    line = refused(capsys, "compare", "-t", "linear", "-c", CURVE, "-p", "static", "-o", "/proc")
    assert "/proc" in line


def test_a_real_process_exits_cleanly_when_its_reader_closes_the_pipe(tmp_path: Path) -> None:
    line = f"set -o pipefail; rheostat compare -t linear -c {CURVE} -p static,ds2 | head -1"
    done = process(line, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("linear under step")


def test_guards_limit_how_often_a_policy_changes_anything(capsys: pytest.CaptureFixture[str]) -> None:
    def changes(*more: str) -> int:
        assert compare("threshold", "--json", *more, curve="sine:duration=2h:period=20m") == 0
        return int(json.loads(capsys.readouterr().out)["policies"]["threshold"]["reconfigurations"])

    assert changes("--set", "changes_per_hour=2") == 4
    assert 4 < changes("--set", "cooldown_seconds=600") <= 12 < changes()
