import json
from pathlib import Path
from typing import Any

import pytest

from rheostat.allocate import MeasuredTopology, read_topology
from rheostat.model.errors import FileError


def source(**changes: Any) -> dict[str, Any]:
    return {"name": "s", "output_rate": 100, "children": {"a": 1}} | changes


def operator(**changes: Any) -> dict[str, Any]:
    return {"name": "a", "input_rate": 100, "output_rate": 50, "max_rate": 50} | changes


def read(tmp_path: Path, *components: dict[str, Any], **top: Any) -> MeasuredTopology:
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"name": "t", "components": list(components)} | top))
    return read_topology(path)


def test_a_component_without_a_max_rate_is_a_source(tmp_path: Path) -> None:
    first, second = read(tmp_path, source(), operator()).components
    assert (first.source, second.source) == (True, False)
    assert (first.units, dict(second.children)) == (1, {})


def test_the_ratio_is_output_per_processed_row(tmp_path: Path) -> None:
    ratio = read(tmp_path, source(), operator(output_rate=75)).components[1].ratio
    assert ratio == pytest.approx(1.5)


def test_an_idle_component_is_taken_to_pass_on_what_it_gets(tmp_path: Path) -> None:
    idle = operator(input_rate=0, output_rate=0)
    assert read(tmp_path, source(output_rate=0), idle).components[1].ratio == 1


def test_yaml_with_numeric_names_is_read_alike(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(
        "components:\n- {name: 1, output_rate: 5, children: {2: 1}}\n"
        "- {name: 2, input_rate: 5, output_rate: 5, max_rate: 9}\n"
    )
    assert [one.name for one in read_topology(path).components] == ["1", "2"]


def test_shares_that_exceed_one_by_rounding_are_brought_down_to_one(tmp_path: Path) -> None:
    parts = {"a": 0.334, "b": 0.334, "c": 0.333}  # 1.001
    first = read(tmp_path, source(children=parts), *(operator(name=name) for name in parts)).components[0]
    assert sum(first.children.values()) == pytest.approx(1.0, abs=1e-12)
    assert first.children["a"] / first.children["c"] == pytest.approx(0.334 / 0.333)
    less = read(tmp_path, source(children={"a": 0.999}), operator()).components[0]
    assert less.children == {"a": 0.999}


@pytest.mark.parametrize(
    ("components", "words"),
    [
        ([source(), operator(input_rate=0)], ["'a'", "processes none"]),
        ([source(), operator(max_rate=0)], ["'a'", "processes none"]),
        ([source(), operator(max_rate=-1)], ["'a'", "max_rate"]),
        ([source(), operator(output_rate=-5)], ["'a'", "output_rate"]),
        ([source(), operator(input_rate=1e300)], ["'a'", "input_rate"]),
        ([source(), operator(output_rate=float("nan"))], ["'a'", "output_rate"]),
        ([source(), operator(max_rate=float("inf"))], ["'a'", "max_rate"]),
        ([source(), operator(max_rate="50")], ["'a'", "max_rate"]),
        ([source(input_rate=5), operator()], ["'s'", "input_rate"]),
        ([source(), {"name": "a", "output_rate": 5}], ["'a'", "source"]),
        ([source(), operator(), operator(name="b")], ["'b'", "feeds"]),
        ([source(), {"name": "a", "output_rate": 5, "max_rate": 9}], ["'a'", "input_rate"]),
        ([source(), operator(units=0)], ["'a'", "units"]),
        ([source(), operator(units=1.5)], ["'a'", "units"]),
        ([source(), operator(units=10**12)], ["'a'", "units"]),
        ([source(), operator(children={"a": 1})], ["'a'", "cycle"]),
        ([source(children={"x": 1}), operator()], ["'s'", "'x'"]),
        ([source(children={"a": 1.2}), operator()], ["'s'", "more than 1"]),
        ([source(children={"a": 1.011}), operator()], ["'s'", "more than 1"]),
        ([source(children={"a": -0.2}), operator()], ["'s'", "'a'"]),
        ([source(), operator(), operator()], ["'a'", "twice"]),
        ([source(), operator(max_rte=5)], ["'a'", "max_rate"]),
        ([source(), {"name": "a", "input_rate": 1, "max_rate": 1}], ["'a'", "output_rate"]),
        ([], ["component"]),
    ],
)
def test_nonsense_is_refused_in_one_line_that_names_the_component(
    tmp_path: Path, components: list[dict[str, Any]], words: list[str]
) -> None:
    with pytest.raises(FileError) as caught:
        read(tmp_path, *components)
    message = str(caught.value)
    assert "\n" not in message
    assert all(word in message for word in words), message


def test_unknown_keys_at_the_top_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="unknown key"):
        read(tmp_path, source(), operator(), colour="red")


def test_empty_and_oversized_files_are_refused(tmp_path: Path) -> None:
    empty, large = tmp_path / "empty.json", tmp_path / "large.json"
    empty.write_text("")
    large.write_bytes(b" " * (10 * 1024 * 1024 + 1))
    for path in (empty, large, tmp_path / "absent.json"):
        with pytest.raises(FileError):
            read_topology(path)
