import json
from pathlib import Path

import pytest

from rheostat.allocate import ALGORITHMS
from rheostat.cli.main import run

DIAMOND = str(Path(__file__).parents[2] / "examples" / "allocate" / "p4_diamond.json")


def call(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        run(["allocate", *arguments])
    return int(ended.value.code or 0)


def test_json_states_the_throughput_now_and_one_allocation_per_algorithm(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert call(DIAMOND, "--units", "4", "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["throughput"] == 600
    assert list(answer["allocations"]) == ["stela", "predictive", "combined", "optimal"]
    assert answer["allocations"]["stela"] == {
        "units": {"2": 1, "3": 2, "4": 1},
        "throughput": 1000,
        "gain": 400,
    }
    assert answer["allocations"]["optimal"]["gap"] == 0


def test_the_help_names_every_algorithm(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("--help") == 0
    output = " ".join(capsys.readouterr().out.split())
    assert ", ".join([*ALGORITHMS, "or all."]) in output


def test_measured_shares_may_be_rounded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    operators = [
        {"name": name, "input_rate": 33, "output_rate": 33, "max_rate": 33, "children": {}} for name in "abc"
    ]
    source = {"name": "s", "output_rate": 100, "children": {"a": 0.334, "b": 0.334, "c": 0.333}}
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"components": [source, *operators]}))
    assert call(str(path), "--units", "1", "--json") == 0
    assert json.loads(capsys.readouterr().out)["throughput"] == 99


def test_a_single_algorithm_can_be_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(DIAMOND, "--units", "1", "--algorithm", "predictive", "--json") == 0
    same = {"units": {"3": 1}, "throughput": 800, "gain": 200}
    assert json.loads(capsys.readouterr().out)["allocations"] == {
        "predictive": {"units": {"3": 1}, "throughput": 800, "gain": 200, "optimal": same}
    }


def test_the_default_output_is_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(DIAMOND, "--units", "2") == 0
    shown = capsys.readouterr().out
    assert "stela" in shown
    assert "2:1, 3:1" in shown


def test_help_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("--help") == 0
    assert "Example" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        (DIAMOND, "--units", "-1"),
        (DIAMOND, "--units", "1000000000"),
        (DIAMOND, "--units", "many"),
        (DIAMOND,),
        (DIAMOND, "--units", "1", "--algorithm", "stella"),
        ("absent.json", "--units", "1"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(*arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.strip().splitlines()) == 1
