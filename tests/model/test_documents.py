from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import Field

from rheostat.model.documents import MAX_BYTES, Document, parse, read_document
from rheostat.model.errors import FileError


class Part(Document):
    name: str
    cost: float = 0.0


class Whole(Document):
    name: str
    parts: list[Part] = Field(default_factory=list)
    shares: dict[str, float] = Field(default_factory=dict)


def read(folder: Path, text: str | bytes, name: str = "file.yaml") -> dict[str, Any]:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_document(path)


def refusal(folder: Path, text: str | bytes, name: str = "file.yaml") -> str:
    with pytest.raises(FileError) as refused:
        read(folder, text, name)
    message = str(refused.value)
    assert str(folder / name) in message
    assert len(message.splitlines()) == 1
    return message


@pytest.mark.parametrize("name", ["file.yaml", "file.yml", "file.json", "file.JSON", "file"])
def test_the_same_json_is_read_whatever_the_suffix(tmp_path: Path, name: str) -> None:
    assert read(tmp_path, '{"name": "a", "parts": [1, 2.5, null]}', name) == {
        "name": "a",
        "parts": [1, 2.5, None],
    }


@pytest.mark.parametrize("name", ["file.yaml", "file.json"])
def test_a_byte_order_mark_before_the_text_is_no_mistake(tmp_path: Path, name: str) -> None:
    assert read(tmp_path, b'\xef\xbb\xbf{"name": "a"}', name) == {"name": "a"}


@pytest.mark.parametrize("content", [b"", b"  \n\t ", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("name", ["file.yaml", "file.json"])
def test_an_empty_file_is_refused(tmp_path: Path, content: bytes, name: str) -> None:
    assert "empty" in refusal(tmp_path, content, name)


def test_a_file_of_exactly_10_mb_is_read_and_one_byte_more_is_refused(tmp_path: Path) -> None:
    start = b'{"name": "a"}'
    assert read(tmp_path, start + b" " * (MAX_BYTES - len(start)), "file.json") == {"name": "a"}
    assert "10 MB" in refusal(tmp_path, start + b" " * (MAX_BYTES + 1 - len(start)), "file.json")


def test_an_endless_file_is_refused_without_reading_it_all() -> None:
    with pytest.raises(FileError, match="10 MB"):
        read_document(Path("/dev/zero"))


@pytest.mark.parametrize(
    ("path", "said"), [("absent.json", "No such file"), (".", "directory"), ("a\0b.json", "null byte")]
)
def test_what_cannot_be_opened_is_refused(path: str, said: str) -> None:
    with pytest.raises(FileError, match=said):
        read_document(Path(path))


def test_a_name_that_no_file_system_takes_is_refused() -> None:
    with pytest.raises(FileError, match="too long"):
        read_document(Path("a" * 5000 + ".json"))


def test_bytes_that_are_not_utf8_are_refused_with_their_place(tmp_path: Path) -> None:
    assert "not UTF-8 text (byte 6)" in refusal(tmp_path, b"name: \xff")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("file.json", "[1]"),
        ("file.json", "3"),
        ("file.yaml", "- 1"),
        ("file.yaml", "word"),
        ("file.yaml", "~"),
    ],
)
def test_a_top_that_is_no_mapping_is_refused(tmp_path: Path, name: str, content: str) -> None:
    assert "expected a mapping" in refusal(tmp_path, content, name)


def test_bad_json_is_refused_with_its_line(tmp_path: Path) -> None:
    assert "line 2: not JSON" in refusal(tmp_path, '{\n"a": }', "file.json")


@pytest.mark.parametrize(
    "content",
    [
        "a: !!python/object/apply:os.system ['true']",
        "a: !!python/name:os.system",
        "a: !!python/object:rheostat.model.topology.Topology {}",
        "a: !!bool x",
        "a: !!timestamp 99",
        "a: !!binary aGk=",
        "a: ! 5",
        "a: !own 5",
        "!!map {a: 1}",
    ],
)
def test_yaml_tags_are_refused_so_that_nothing_is_ever_built_or_run(tmp_path: Path, content: str) -> None:
    assert "line 1: not usable YAML: tags" in refusal(tmp_path, content)


def test_yaml_aliases_are_refused_because_they_multiply(tmp_path: Path) -> None:
    levels = "\n".join(f"k{n}: &l{n} [*l{n - 1}, *l{n - 1}]" for n in range(1, 40))
    assert "line 2: not usable YAML: aliases" in refusal(tmp_path, f"k0: &l0 [1, 1]\n{levels}")


@pytest.mark.parametrize(
    "content",
    ["a: 1\na: 2", "a: 1\n'a': 2", "1: a\n1.0: b", "1: a\n0x1: b", "1: a\n'1': b", "<<: {a: 1}\na: 2"],
)
def test_a_doubled_yaml_key_is_refused_however_it_is_written(tmp_path: Path, content: str) -> None:
    assert "duplicate key" in refusal(tmp_path, content)


def test_a_doubled_json_key_is_refused_at_any_depth(tmp_path: Path) -> None:
    assert "duplicate key 'a'" in refusal(tmp_path, '{"b": [{"a": 1, "a": 1}]}', "file.json")


@pytest.mark.parametrize("name", ["file.yaml", "file.json"])
@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_deep_nesting_is_refused(tmp_path: Path, name: str, opening: str) -> None:
    assert "nested too deeply" in refusal(tmp_path, '{"a":' + opening * 50_000, name)


@pytest.mark.parametrize("name", ["file.yaml", "file.json"])
def test_an_integer_of_thousands_of_digits_is_refused(tmp_path: Path, name: str) -> None:
    assert "not usable" in refusal(tmp_path, '{"a": ' + "1" * 10_000 + "}", name)


@pytest.mark.parametrize(
    "content",
    [
        "? [a]\n: 1",
        "? {a: 1}\n: 1\n? {b: 1}\n: 2",
        "a: 2001-99-99",
        "a: =",
        "a: " + "1:" * 300 + "1.5",
        "a: 1\n--- \nb: 2",
        "\t- x",
        "a: [",
        "\x00",
    ],
)
def test_yaml_that_trips_its_parser_is_refused_in_one_line(tmp_path: Path, content: str) -> None:
    assert "not usable YAML" in refusal(tmp_path, content)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({}, "key 'name': field required"),
        ({"name": "a", "prts": []}, "key 'prts': unknown key; did you mean 'parts'?"),
        ({"name": "a", "parts": [{"name": "x"}, {"name": "y", "cost": "much"}]}, "parts 'y', key 'cost'"),
        (
            {"name": "a", "parts": [{"name": "x", "csot": 1}]},
            "parts 'x', key 'csot': unknown key; did you mean",
        ),
        ({"name": "a", "parts": [{"cost": 1}]}, "parts number 1, key 'name': field required"),
        ({"name": "a", "parts": ["x"]}, "parts number 1"),
        (
            {"name": "a", "parts": [{"name": "x", "cost": float("nan")}]},
            "parts 'x', key 'cost': input should be a f",
        ),
        ({"name": "a", "shares": {2: "x"}}, "key 'shares', key '2'"),
        ({"name": "a", "shares": {"b": float("inf")}}, "key 'shares', key 'b': input should be a finite"),
    ],
)
def test_a_mistake_is_told_with_its_place_and_the_nearest_key(content: dict[str, Any], said: str) -> None:
    with pytest.raises(FileError) as refused:
        parse(Whole, content, Path("f.json"))
    assert f"f.json: {said}" in str(refused.value)


def test_a_numeric_name_is_a_name() -> None:
    assert parse(Whole, {"name": 1, "parts": [{"name": 2.5}]}, Path("f")).parts[0].name == "2.5"


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.binary(max_size=200) | st.text("ab:-?[]{}!&*|>'\"%@ \n\t#~<=0.1", max_size=60).map(str.encode),
    name=st.sampled_from(["f.json", "f.yaml"]),
)
def test_any_bytes_give_a_mapping_or_a_file_error(tmp_path: Path, content: bytes, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    try:
        assert isinstance(read_document(path), dict)
    except FileError as error:
        assert str(error).startswith(str(path))
