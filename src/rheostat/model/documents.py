"""Reads JSON and YAML files as data: bounded in size, never executed, duplicate keys refused."""

import json
from collections.abc import Hashable
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from rheostat.model.errors import FileError, nearest
from rheostat.model.files import write_whole

MAX_BYTES = 10 * 1024 * 1024
MAX_DEPTH = 100


class Document(BaseModel):
    """A part of a file: unknown keys, NaN and infinities are errors; a numeric name is read as text."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, coerce_numbers_to_str=True)


T = TypeVar("T", bound=Document)


def read_document(path: Path) -> dict[str, Any]:
    """Read a JSON or YAML file whose top level is a mapping; FileError says what is wrong with it."""
    data = _bytes(path)
    try:
        text = data.decode("utf-8-sig")  # editors on Windows put a mark before the text
    except UnicodeDecodeError as error:
        raise FileError(f"{path}: not UTF-8 text (byte {error.start})") from None
    if not text.strip():
        raise FileError(f"{path}: the file is empty")
    parsed = _json(path, text) if path.suffix.lower() == ".json" else _yaml(path, text)
    if not isinstance(parsed, dict):
        raise FileError(f"{path}: expected a mapping at the top, found {type(parsed).__name__}")
    return parsed


def write_document(path: Path, document: Document) -> None:
    """Write a document as YAML; a reader sees the old file or the new one, never a part."""
    text = yaml.safe_dump(
        document.model_dump(mode="json"), sort_keys=False, default_flow_style=None, width=110
    )
    write_whole(path, text.encode())


def parse(kind: type[T], content: dict[str, Any], path: Path) -> T:
    """Validate a document's content; the first error becomes a one-line FileError that says where it is."""
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = _place(first["loc"], content)
        if first["type"] == "extra_forbidden":
            key = str(first["loc"][-1])
            raise FileError(
                f"{path}: {place}: unknown key{nearest(key, _keys(kind, first['loc']))}"
            ) from None
        message = first["msg"].removeprefix("Value error, ")
        message = message[0].lower() + message[1:]
        raise FileError(f"{path}: {place}: {message}") from None


def not_a_truth_value(value: object) -> object:
    """Refuse `cost: yes`, which would otherwise be a cost of 1."""
    if isinstance(value, bool):
        raise ValueError(f"a number is needed, not {str(value).lower()}")
    return value


def storable(text: str) -> str:
    """The text without lone surrogates, which JSON can express but no UTF-8 file can hold."""
    return text.encode("utf-8", "replace").decode()


def _bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # a NUL in the name
        raise FileError(f"{str(path)!r}: cannot be read: {error}") from None
    if len(data) > MAX_BYTES:
        raise FileError(f"{path}: larger than 10 MB; a topology or trace of that size is not supported")
    return data


def _json(path: Path, text: str) -> Any:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        for key, value in pairs:
            if key in mapping:
                raise FileError(f"{path}: duplicate key {key!r}")
            mapping[key] = value
        return mapping

    try:
        return json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        raise FileError(f"{path}: line {error.lineno}: not JSON: {error.msg}") from None
    except (RecursionError, ValueError):
        raise FileError(f"{path}: not usable JSON: nested too deeply or a number is too long") from None


# libyaml is many times faster, if PyYAML was built with it.
_FAST: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_FAST):  # type: ignore[misc]
    """Plain data only, and no duplicate keys."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        mapping: dict[Hashable, Any] = super().construct_mapping(node, deep)
        names: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node)
            if key in names or str(key) in names:  # 1, 1.0, 0x1 and "1" are the same name
                raise yaml.MarkedYAMLError(problem=f"duplicate key {key!r}", problem_mark=key_node.start_mark)
            names |= {key, str(key)}
        return mapping


def _check_events(text: str) -> None:
    """Refuse what plain data does not need: aliases (a small file could become gigabytes), tags, depth."""
    depth = 0
    for event in yaml.parse(text, Loader=_FAST):
        mark: Any = event.start_mark  # libyaml has its own class of marks
        tag = getattr(event, "tag", None)
        if isinstance(event, yaml.events.AliasEvent):
            raise yaml.MarkedYAMLError(problem="aliases (*name) are not allowed", problem_mark=mark)
        if tag is not None:
            raise yaml.MarkedYAMLError(problem=f"tags ({tag!r}) are not allowed", problem_mark=mark)
        depth += isinstance(event, yaml.events.CollectionStartEvent)
        depth -= isinstance(event, yaml.events.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise yaml.MarkedYAMLError(problem="nested too deeply", problem_mark=mark)


def _yaml(path: Path, text: str) -> Any:
    try:
        _check_events(text)
        return yaml.load(text, Loader=_Loader)  # a SafeLoader: builds plain data, never objects
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise FileError(f"{path}: {line}not usable YAML: {error.problem}") from None
    except RecursionError:
        raise FileError(f"{path}: not usable YAML: nested too deeply") from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        summary = str(error).splitlines()[0] if str(error) else "it cannot be parsed"
        raise FileError(f"{path}: not usable YAML: {summary}") from None


def _place(location: tuple[int | str, ...], content: Any) -> str:
    """Describe a location, with the component's name instead of its index.

    >>> _place(("operators", 1, "cost"), {"operators": [{"name": "a"}, {"name": "b"}]})
    "operators 'b', key 'cost'"
    >>> _place(("name",), {})
    "key 'name'"
    >>> _place(("children", 2), {"children": {2: "x"}})
    "key 'children', key '2'"
    """
    parts: list[str] = []
    value = content
    for step in location:
        if isinstance(step, int) and not isinstance(value, dict):
            value = value[step] if isinstance(value, list) and step < len(value) else None
            name = value.get("name") if isinstance(value, dict) else None
            label = repr(str(name)) if name is not None else f"number {step + 1}"
            parts[-1:] = [parts[-1].removeprefix("key ").strip("'") + f" {label}"] if parts else [label]
        else:
            value = value.get(step) if isinstance(value, dict) else None
            parts.append(f"key {str(step)!r}")
    return ", ".join(parts) if parts else "the file"


def _keys(kind: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    """The keys that are allowed where an unknown key was read."""
    model: type[BaseModel] = kind
    for step in location[:-1]:
        if isinstance(step, str) and step in model.model_fields:
            inner = _document_inside(model.model_fields[step].annotation)
            if inner is None:
                return []
            model = inner
    return list(model.model_fields)


def _document_inside(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in getattr(annotation, "__args__", ()):
        document = _document_inside(argument)
        if document is not None:
            return document
    return None
