import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rheostat.model.errors import FileError, UserError
from rheostat.model.topology import Stream, Topology
from rheostat.model.topology_file import find_topology, known_topologies, load_topology

WORDS: dict[str, Any] = {
    "name": "words",
    "operators": [
        {
            "name": "lines",
            "load": 100,
            "cost": 0.001,
            "selectivity": 8,
            "children": {"count": 0.5, "rest": 0.5},
        },
        {"name": "count", "stateful": True, "state_bytes": 1e6, "parallelism": {"min": 2, "max": 8}},
        {"name": "rest"},
    ],
}


def load(folder: Path, content: object, name: str = "t.json") -> Topology:
    path = folder / name
    path.write_text(json.dumps(content) if name.endswith("json") else yaml.safe_dump(content))
    return load_topology(path)


def refusal(folder: Path, *operators: object, suffix: str = "yaml") -> str:
    with pytest.raises(FileError) as refused:
        load(folder, {"name": "t", "operators": list(operators)}, f"t.{suffix}")
    assert len(str(refused.value).splitlines()) == 1
    return str(refused.value)


def test_json_and_yaml_give_the_same_topology(tmp_path: Path) -> None:
    topology = load(tmp_path, WORDS)
    assert topology == load(tmp_path, WORDS, "t.yaml")
    assert topology.streams == (Stream("lines", "count", 8.0, 0.5), Stream("lines", "rest", 8.0, 0.5))
    count = topology.operator("count")
    assert (count.min_parallelism, count.max_parallelism, count.stateful, count.state_bytes) == (
        2,
        8,
        True,
        1e6,
    )
    assert topology.operator("lines").load == 100.0
    assert topology.operator("rest").load is None


@pytest.mark.parametrize("name", known_topologies())
def test_every_topology_that_comes_with_rheostat_loads_by_its_name(name: str) -> None:
    assert find_topology(name).name == name


def test_numbers_may_be_names_and_children(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_text("name: 7\noperators: [{name: 1, children: {2: 1}}, {name: 2}]")
    assert load_topology(path).streams == (Stream("1", "2"),)


def test_a_small_cost_may_be_written_without_a_point(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_text("name: t\noperators: [{name: a, cost: 1e-5}]")
    assert load_topology(path).operator("a").cost_seconds == 1e-5


@pytest.mark.parametrize("key", ["load", "cost", "selectivity", "state_bytes"])
@pytest.mark.parametrize("value", [-1, -1e-300, float("nan"), float("inf"), True, "many", [], {}])
@pytest.mark.parametrize("suffix", ["json", "yaml"])
def test_a_number_that_is_none_is_refused_and_the_operator_named(
    tmp_path: Path, key: str, value: object, suffix: str
) -> None:
    message = refusal(tmp_path, {"name": "good"}, {"name": "bad", key: value}, suffix=suffix)
    assert f"operators 'bad', key '{key}'" in message


@pytest.mark.parametrize("value", [-0.1, float("nan"), float("inf"), True, "half", 1.01])
def test_a_share_that_is_none_is_refused_and_the_operator_named(tmp_path: Path, value: object) -> None:
    message = refusal(tmp_path, {"name": "bad", "children": {"end": value}}, {"name": "end"})
    assert "'bad'" in message


@pytest.mark.parametrize(
    ("operators", "said"),
    [
        ([{"name": "a", "children": {"b": 1}}], "operator 'a' sends to 'b', which does not exist"),
        ([{"name": "a", "children": {"a": 1}}], "operator 'a' is in a cycle: a -> a"),
        ([{"name": "a"}, {"name": "a"}], "operator 'a' is stated twice"),
        ([{"name": 1}, {"name": "1"}], "operator '1' is stated twice"),
        ([{"name": ""}], "one operator has an empty name"),
        ([{"name": "\x1b[31mred"}], "can be printed"),
        ([], "there is no operator"),
        (
            [{"name": "a", "children": {"b": 1}}, {"name": "b", "load": 5}],
            "operator 'b' has a load but is fed",
        ),
        (
            [{"name": "a", "childern": {}}],
            "operators 'a', key 'childern': unknown key; did you mean 'children'?",
        ),
        ([{"name": "a", "parallelism": {"mx": 2}}], "key 'mx': unknown key; did you mean 'max'?"),
        (
            [{"name": "a", "parallelism": {"min": 100}}],
            "operator 'a': parallelism min 100 is greater than max 64",
        ),
        ([{"name": "a", "parallelism": {"min": 0}}], "operators 'a', key 'parallelism', key 'min'"),
        ([{"name": "a", "parallelism": {"max": 10**30}}], "operators 'a', key 'parallelism', key 'max'"),
        ([{"name": "a", "parallelism": {"max": 1.5}}], "operators 'a', key 'parallelism', key 'max'"),
        ([{"cost": 1}], "operators number 1, key 'name': field required"),
        (["a"], "operators number 1"),
        ([None], "operators number 1"),
    ],
)
@pytest.mark.parametrize("suffix", ["json", "yaml"])
def test_a_mistake_is_refused_and_named(
    tmp_path: Path, operators: list[object], said: str, suffix: str
) -> None:
    assert said in refusal(tmp_path, *operators, suffix=suffix)


def test_unknown_keys_at_the_top_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"key 'operatrs': unknown key|key 'operators': field required"):
        load(tmp_path, {"name": "t", "operatrs": []})
    with pytest.raises(FileError, match="key 'version': unknown key"):
        load(tmp_path, {**WORDS, "version": 2})


def test_a_chain_of_ten_thousand_operators_loads(tmp_path: Path) -> None:
    chain = [{"name": n, "children": {n + 1: 1} if n < 9999 else {}} for n in range(10_000)]
    topology = load(tmp_path, {"name": "chain", "operators": chain})
    assert topology.depth["9999"] == 9999
    assert [topology.role(name) for name in ("0", "5000", "9999")] == ["source", "operator", "sink"]


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("linaer", "there is no file and no topology 'linaer'; did you mean 'linear'?"),
        ("absent.yml", "absent.yml: cannot be read"),
        ("a" * 5000, "there is no file and no topology"),
        ("a\0b", "there is no file and no topology"),
    ],
)
def test_a_topology_that_is_nowhere_is_refused(word: str, said: str) -> None:
    with pytest.raises(UserError) as refused:
        find_topology(word)
    assert said in str(refused.value)


def test_a_file_without_a_suffix_is_read_as_yaml(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("name: mine\noperators: [{name: a}]")
    assert find_topology(str(tmp_path / "mine")).name == "mine"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from("ab"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abname"), inner, max_size=3),
    max_leaves=6,
)
OPERATORS = st.fixed_dictionaries(
    {"name": st.sampled_from("abc") | VALUES},
    optional={
        "load": st.floats() | VALUES,
        "cost": st.floats() | VALUES,
        "selectivity": st.floats() | VALUES,
        "stateful": VALUES,
        "parallelism": st.dictionaries(st.sampled_from(["min", "max"]), st.integers() | VALUES),
        "children": st.dictionaries(st.sampled_from("abc"), st.floats(0, 1) | VALUES, max_size=2) | VALUES,
    },
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.fixed_dictionaries(
        {"name": st.just("t") | VALUES, "operators": st.lists(OPERATORS, max_size=3)}
    ),
    suffix=st.sampled_from(["json", "yaml"]),
)
def test_any_content_gives_a_topology_or_a_one_line_file_error(
    tmp_path: Path, content: dict[str, Any], suffix: str
) -> None:
    try:
        topology = load(tmp_path, content, f"t.{suffix}")
    except FileError as error:
        assert len(str(error).splitlines()) == 1
    else:
        assert set(topology.order) == set(topology.names)
        assert all(operator.cost_seconds >= 0 for operator in topology.operators)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=300), suffix=st.sampled_from(["json", "yaml"]))
def test_any_bytes_give_a_topology_or_a_file_error(tmp_path: Path, content: bytes, suffix: str) -> None:
    path = tmp_path / f"t.{suffix}"
    path.write_bytes(content)
    with pytest.raises(FileError):
        load_topology(path)
