"""Finds policies by name, third parties' included, and builds them from words like `ds2(restart_time=5)`."""

import dataclasses
import math
import re
import typing
from importlib.metadata import entry_points
from typing import Any

from rheostat.model.errors import UserError, nearest
from rheostat.policies.base import Policy

GROUP = "rheostat.policies"
_SPEC = re.compile(r"^\s*([A-Za-z0-9_.-]+)\s*(?:\((.*)\))?\s*$", re.DOTALL)


def available() -> dict[str, type[Policy]]:
    """Every installed policy by name."""
    return {entry.name: entry.load() for entry in sorted(entry_points(group=GROUP), key=lambda e: e.name)}


def build(spec: str) -> Policy:
    """Build a policy from its name and, in parentheses, the parameters that differ from the paper's.

    >>> build("elysium(cpu_max_thr=0.7)").cpu_max_thr
    0.7
    """
    match = _SPEC.match(spec)
    if not match:
        raise UserError(f"cannot read policy {spec!r}; write it as name or name(parameter=value,...)")
    name, parameters = match.group(1), match.group(2)
    known = {entry.name: entry for entry in entry_points(group=GROUP)}
    if name not in known:
        raise UserError(f"unknown policy {name!r}{nearest(name, known)}")
    kind: type[Policy] = known[name].load()
    values: dict[str, Any] = {}
    for text in filter(str.strip, split_top(parameters or "")):
        key, value = _pair(kind, name, text)
        if key in values:
            raise UserError(f"policy {name!r}: {key} is stated twice")
        values[key] = value
    try:
        policy = kind(**values)
    except ValueError as error:
        raise UserError(f"policy {name!r}: {error}") from None
    if policy.period_seconds <= 0:
        raise UserError(f"policy {name!r}: period_seconds must be positive")
    return policy


def split_top(text: str) -> list[str]:
    """Split at the commas that are outside of parentheses.

    >>> split_top("static,ds2(a=1,b=2)")
    ['static', 'ds2(a=1,b=2)']
    """
    parts, depth = [""], 0
    for character in text:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def parameters(kind: type[Policy]) -> dict[str, object]:
    """A policy's parameters with their defaults."""
    return {f.name: f.default for f in dataclasses.fields(kind) if f.init}


def _pair(kind: type[Policy], name: str, text: str) -> tuple[str, object]:
    key, equals, raw = (part.strip() for part in text.partition("="))
    fields = {field.name for field in dataclasses.fields(kind) if field.init}
    if not equals or key not in fields:
        raise UserError(f"policy {name!r} has no parameter {key!r}{nearest(key, fields)}")
    return key, _value(typing.get_type_hints(kind)[key], name, key, raw)


def _value(wanted: object, name: str, key: str, raw: str) -> object:
    if wanted is bool:
        if raw.lower() not in ("true", "false"):
            raise UserError(f"policy {name!r}: {key} must be true or false, not {raw!r}")
        return raw.lower() == "true"
    if wanted in (int, float):
        try:
            value = int(raw) if wanted is int else float(raw)
        except ValueError:
            what = "a whole number" if wanted is int else "a number"
            raise UserError(f"policy {name!r}: {key} must be {what}, not {raw!r}") from None
        if not math.isfinite(value):
            raise UserError(f"policy {name!r}: {key} must be finite")
        return value
    return raw
