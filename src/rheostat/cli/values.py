"""Option values shared by several commands: node kinds, bounds, numbers."""

import dataclasses
from collections.abc import Sequence
from enum import StrEnum
from typing import TypeVar

from rheostat.model.configuration import Bounds, NodeKind
from rheostat.model.errors import UserError, nearest

C = TypeVar("C", bound=StrEnum)
MAX_SECONDS = 1e9
# The range of each key, where it is not every positive number.
LIMITS = {
    "cores": (0.001, 10_000.0),
    "slots": (1.0, 10_000.0),
    "executors": (1.0, 10_000.0),
    "memory_mb": (1.0, 1e9),
    "startup_seconds": (0.0, 86_400.0),
    "price_per_hour": (0.0, 1e6),
    "step_seconds": (0.01, 60.0),
    "trigger_seconds": (0.01, 86_400.0),
    "stage_overhead_seconds": (0.0, 86_400.0),
    "executor_startup_seconds": (0.0, 86_400.0),
    "incremental_seconds": (0.0, 86_400.0),
    "restart_seconds": (0.0, 86_400.0),
    "noise": (0.0, 2.0),
    "overhead": (1.0, 100.0),
    "queue_rows": (1.0, 1e15),
    "state_bytes_per_second": (1.0, 1e15),
}


def node_kind(text: str) -> NodeKind:
    """Read `cores=2,slots=2`.

    >>> node_kind("cores=0.5,slots=1").slot_cores
    0.5
    """
    fields = {field.name: field.type for field in dataclasses.fields(NodeKind)}
    values: dict[str, object] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, _, raw = part.partition("=")
        if key not in fields:
            raise UserError(f"--node {part!r}: unknown key{nearest(key, fields)}")
        if key == "name":
            if not raw.isidentifier():
                raise UserError(f"--node {part!r}: a name consists of letters, digits and _")
            values[key] = raw
            continue
        value = number("--node", key, raw)
        whole = key in ("slots", "executors")
        if whole and value != int(value):
            raise UserError(f"--node {key} must be a whole number, not {raw!r}")
        values[key] = int(value) if whole else value
    return NodeKind(**values)  # type: ignore[arg-type]


def node_kinds(texts: Sequence[str]) -> tuple[NodeKind, ...]:
    """Read one `--node` per kind; the first is the default.

    >>> [kind.name for kind in node_kinds(["cores=1", "name=large,cores=4"])]
    ['small', 'large']
    """
    kinds = tuple(map(node_kind, texts))
    if len({kind.name for kind in kinds}) < len(kinds):
        raise UserError("--node: two kinds have the same name; give each a name=... of its own")
    return kinds


def bounds(text: str) -> Bounds:
    """Read `MIN:MAX`.

    >>> bounds("1:20")
    Bounds(min_nodes=1, max_nodes=20)
    """
    low, colon, high = text.partition(":")
    try:
        result = Bounds(int(low), int(high) if colon else int(low))
    except ValueError:
        raise UserError(f"--nodes must be MIN:MAX, such as 1:20, not {text!r}") from None
    if not 1 <= result.min_nodes <= result.max_nodes <= 100_000:
        raise UserError(f"--nodes must satisfy 1 <= MIN <= MAX <= 100000, not {text!r}")
    return result


def number(option: str, key: str, raw: str) -> float:
    """Read a number within the limits of its key."""
    try:
        value = float(raw)
    except ValueError:
        raise UserError(f"{option} {key} must be a number, not {raw!r}") from None
    low, high = LIMITS.get(key, (0.0, 1e15))
    if not low <= value <= high:
        raise UserError(f"{option} {key} must be from {low:g} to {high:g}, not {raw!r}")
    return value


def choice(option: str, text: str, choices: type[C]) -> C:
    """Read one of a few words; UserError if it is another."""
    try:
        return choices(text)
    except ValueError:
        words = [member.value for member in choices]
        raise UserError(f"{option} must be {', '.join(words[:-1])} or {words[-1]}, not {text!r}") from None


def positive(option: str, value: float, least: float = 0.001) -> float:
    """Return the value of an option; UserError if it is too small or not finite."""
    if not value >= least:
        raise UserError(f"{option} must be at least {least:g}, not {value:g}")
    if value > MAX_SECONDS:
        raise UserError(f"{option} must be at most {MAX_SECONDS:g}, not {value:g}")
    return value
