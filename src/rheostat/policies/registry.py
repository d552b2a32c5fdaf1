"""Finds policies by name, third parties' included, and builds them from words like `ds2(restart_time=5)`."""

import dataclasses
import inspect
import math
import re
import typing
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from rheostat.model.errors import UserError, nearest
from rheostat.policies.base import Info, Policy
from rheostat.policies.foreign import FAILURES, failure

GROUP = "rheostat.policies"
_SPEC = re.compile(r"^\s*([A-Za-z0-9_.-]+)\s*(?:\((.*)\))?\s*$", re.DOTALL)


def available() -> dict[str, type[Policy]]:
    """Every installed policy that can be used, by name."""
    return installed()[0]


def installed() -> tuple[dict[str, type[Policy]], dict[str, str]]:
    """Every policy that can be used, and of each that cannot, why."""
    usable, broken = dict[str, type[Policy]](), dict[str, str]()
    for entry in sorted(entry_points(group=GROUP), key=lambda e: e.name):
        try:
            kind = _load(entry)
            if all(default is not dataclasses.MISSING for default in _defaults(kind).values()):
                _make(kind, entry.name, {})
        except UserError as error:
            broken[entry.name] = str(error)
        else:
            usable[entry.name] = kind
    return usable, broken


def build(spec: str) -> Policy:
    """Build a policy from its name and, in parentheses, the parameters that differ from the paper's.

    >>> build("elysium(cpu_max_thr=0.7)").cpu_max_thr
    0.7
    """
    match = _SPEC.match(spec)
    if not match:
        raise UserError(f"cannot read policy {spec!r}; write it as name or name(parameter=value,...)")
    name, parameters = match.group(1), match.group(2)
    kind = find(name)
    values: dict[str, Any] = {}
    for text in filter(str.strip, split_top(parameters or "")):
        key, value = _pair(kind, name, text)
        if key in values:
            raise UserError(f"policy {name!r}: {key} is given twice")
        values[key] = value
    return _make(kind, name, values)


def find(name: str) -> type[Policy]:
    """A policy's class by its name alone."""
    entries = {entry.name: entry for entry in entry_points(group=GROUP)}
    if name not in entries:
        raise UserError(f"unknown policy {name!r}{nearest(name, entries)}")
    return _load(entries[name])


def _load(entry: EntryPoint) -> type[Policy]:
    """Import a policy and check that it is usable."""
    try:
        kind = entry.load()
    except FAILURES as error:
        raise UserError(f"policy {entry.name!r} cannot be imported: {failure(error)}") from None
    if not isinstance(kind, type) or not issubclass(kind, Policy):
        raise UserError(f"policy {entry.name!r} cannot be used: {entry.value} is not a subclass of Policy")
    if inspect.isabstract(kind):
        raise UserError(f"policy {entry.name!r} cannot be used: it has no method `propose`")
    try:
        info = getattr(kind, "info", None)
    except FAILURES as error:
        raise UserError(f"policy {entry.name!r} cannot be used: {failure(error)}") from None
    if not isinstance(info, Info) or not all(isinstance(word, str) for word in vars(info).values()):
        raise UserError(f"policy {entry.name!r} cannot be used: it has no `info` of strings")
    return kind


def _make(kind: type[Policy], name: str, values: Mapping[str, Any]) -> Policy:
    try:
        policy = dataclasses.replace(kind(**values))  # replaced, as `run` replaces the period
    except ValueError as error:
        raise UserError(f"policy {name!r}: {' '.join(str(error).split())}") from None
    except UserError:
        raise
    except FAILURES as error:
        raise UserError(f"policy {name!r} cannot be built: {failure(error)}") from None
    period: Any = policy.period_seconds
    if not isinstance(period, int | float) or not 0 < period < math.inf:
        raise UserError(f"policy {name!r}: period_seconds must be positive and finite, not {period!r}")
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
    return {name: _plain(default) for name, default in _defaults(kind).items()}


def _defaults(kind: type[Policy]) -> dict[str, object]:
    """MISSING where a parameter must be given; a default that is made may fail as the policy itself may."""
    try:
        return {
            f.name: f.default if f.default_factory is dataclasses.MISSING else f.default_factory()
            for f in dataclasses.fields(kind)
            if f.init
        }
    except FAILURES as error:
        raise UserError(f"policy {kind.info.name!r} cannot be built: {failure(error)}") from None


def _plain(default: object) -> object:
    """A default that JSON has; None where a parameter must be given."""
    if default is dataclasses.MISSING:
        return None
    return default if isinstance(default, str | int | float) or default is None else str(default)


def _pair(kind: type[Policy], name: str, text: str) -> tuple[str, object]:
    key, equals, raw = (part.strip() for part in text.partition("="))
    fields = {field.name for field in dataclasses.fields(kind) if field.init}
    if not equals or key not in fields:
        raise UserError(f"policy {name!r} has no parameter {key!r}{nearest(key, fields)}")
    try:
        wanted = typing.get_type_hints(kind)[key]
    except Exception as error:
        raise UserError(f"policy {name!r} cannot be built: {failure(error)}") from None
    return key, _value(wanted, name, key, raw)


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
