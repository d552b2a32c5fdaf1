import json
from pathlib import Path

import pytest

from rheostat.model.topology_file import known_topologies
from tests.cli.commands import call, refused


@pytest.fixture(autouse=True)
def _eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def write(folder: Path, text: str, name: str = "t.yaml") -> str:
    (folder / name).write_text(text)
    return str(folder / name)


@pytest.mark.parametrize("name", known_topologies())
def test_every_topology_that_comes_with_rheostat_is_drawn_within_80_columns(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("topology", name) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"{name}: ")
    assert max(map(len, shown.splitlines())) <= 80


def test_a_topology_is_drawn_with_its_rates(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("topology", "wordcount", "--load", "500") == 0
    assert capsys.readouterr().out.splitlines() == [
        "wordcount: 4 operators at 500 rows/s",
        "sentences: 500 rows/s, 0.25 cores, x1-64",
        "└── 500 rows/s → split: 500 rows/s, 1 cores, x1-64",
        "    └── 4,000 rows/s → count: 4,000 rows/s, 4.8 cores, x1-64, stateful",
        "        └── 4,000 rows/s → publish: 4,000 rows/s, 2.4 cores, x1-64",
        "CPU needed: 8.45 cores",
    ]


def test_an_operator_drawn_above_is_only_named_below_and_small_rates_are_not_zero(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert call("topology", "ddos") == 0
    lines = capsys.readouterr().out.splitlines()
    drawn = next(n for n, line in enumerate(lines) if "assembler:" in line)
    named = next(n for n, line in enumerate(lines) if "assembler (above)" in line)
    assert drawn < named
    assert "0.04 rows/s → assembler: 0.08 rows/s" in lines[drawn]


def test_a_source_without_a_load_is_marked_as_assumed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, "name: t\noperators: [{name: a, cost: 0.5}]")
    assert call("topology", path) == 0
    shown = capsys.readouterr().out
    assert "t: 1 operator at 1 rows/s" in shown
    assert "1 row/s assumed where no load is stated: a" in shown
    assert call("topology", path, "--load", "3") == 0
    assert "assumed" not in capsys.readouterr().out


def test_json_states_every_rate(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("topology", "star", "--load", "100", "--json") == 0
    output = json.loads(capsys.readouterr().out)
    assert (output["name"], output["sources"], output["sinks"]) == (
        "star",
        ["source1", "source2"],
        ["sink1", "sink2"],
    )
    assert output["operators"][2] == {
        "name": "hub",
        "role": "operator",
        "rows_per_second": 100.0,
        "cores": pytest.approx(0.03),
        "stateful": False,
        "parallelism": {"min": 1, "max": 12},
        "streams": {"sink1": 50.0, "sink2": 50.0},
    }


def test_names_with_brackets_are_names_and_not_markup(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(
        tmp_path, "name: '[/x]'\noperators: [{name: '[bold]a', children: {'[/]': 1}}, {name: '[/]'}]"
    )
    assert call("topology", path) == 0
    shown = capsys.readouterr().out
    assert "[/x]: 2 operators" in shown
    assert "[bold]a: 1 rows/s" in shown
    assert "→ [/]: 1 rows/s" in shown


def test_a_chain_of_hundreds_of_operators_is_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chain = [{"name": str(n), "children": {str(n + 1): 1} if n < 399 else {}} for n in range(400)]
    path = write(tmp_path, json.dumps({"name": "chain", "operators": chain}), "t.json")
    assert call("topology", path) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "chain: 400 operators at 1 rows/s"
    assert [n for n in range(400) if not any(f"{n}: 1 rows/s" in line for line in lines)] == []
    assert sum("(below)" in line for line in lines) == 400 // 9
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("name: t", "key 'operators': field required"),
        ("name: t\noperators: []", "there is no operator"),
        (
            "name: t\noperators: [{name: a, children: {b: 1}}]",
            "operator 'a' sends to 'b', which does not exist",
        ),
        ("name: t\noperators: [{name: a, children: {a: 1}}]", "operator 'a' is in a cycle"),
        ("name: t\noperators: [{name: a}, {name: a}]", "operator 'a' is stated twice"),
        (
            "name: t\noperators: [{name: a, children: {b: 1.1}}, {name: b}]",
            "operator 'a': its shares add up to 1.1",
        ),
        ("name: t\noperators: [{name: a, cost: -1}]", "operators 'a', key 'cost'"),
        ("name: t\noperators: [{name: a, load: .nan}]", "operators 'a', key 'load'"),
        ("name: t\noperators: [{name: a, colour: red}]", "operators 'a', key 'colour': unknown key"),
        ("a: !!python/object/apply:os.system ['touch hacked']", "tags"),
        ("name: t\noperators: [{name: a, load: 1e308}]", "operator 'a' would get 1e+308 rows/s"),
        ("name: t\noperators: [{name: a, load: 1e9, cost: 1e9}]", "operator 'a' would need 1e+18 cores"),
        (
            "name: t\noperators: [{name: a, load: 9, selectivity: 1e300, children: {b: 1}}, {name: b}]",
            "operator 'b' would get 9e+300 rows/s",
        ),
    ],
)
def test_a_bad_file_is_refused_with_the_component_named(
    text: str,
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert message in refused(capsys, "topology", write(tmp_path, text))
    assert message in refused(capsys, "topology", "--json", write(tmp_path, text))
    assert [path.name for path in tmp_path.iterdir()] == ["t.yaml"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["linaer"], "did you mean 'linear'?"),
        (["nowhere.yaml"], "nowhere.yaml: cannot be read"),
        (["/dev/zero"], "larger than 10 MB"),
        (["."], "directory"),
        (["a" * 5000], "there is no file"),
        (["linear", "--load", "-1"], "--load"),
        (["linear", "--load", "nan"], "--load"),
        (["linear", "--load", "inf"], "--load"),
        (["linear", "--load", "1e300"], "operator 'source' would get 1e+300 rows/s"),
    ],
)
def test_bad_arguments_are_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in refused(capsys, "topology", *arguments)
