"""The one-line way to write a curve: name[:key=value]*, for example sine:high=2000:period=10m."""

import math
import re
from collections.abc import Mapping
from pathlib import Path

from rheostat.model.errors import UserError, nearest
from rheostat.workloads.catalogue import DAY, FAMILIES, MAX_SECONDS, Family, Key
from rheostat.workloads.curve import Curve, RateFunction, within
from rheostat.workloads.noise import KINDS, Noise
from rheostat.workloads.traces import read_trace

Value = float | str | None
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d{1,3})?", re.ASCII | re.IGNORECASE)
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_MAX_SPEC = 4096
MIN_SECONDS = 1.0


def curve_names() -> list[str]:
    """The names of all curves that `parse_curve` accepts."""
    return list(FAMILIES)


def parse_curve(spec: str) -> Curve:
    """Build the curve that a specification names; a mistake is a one-line UserError.

    >>> parse_curve("sine:low=100:high=900:period=10m").at(300)
    900.0
    >>> parse_curve("sin")
    Traceback (most recent call last):
    rheostat.model.errors.UserError: unknown load curve 'sin'; did you mean 'sine'?
    """
    if len(spec) > _MAX_SPEC:
        raise UserError(f"the load curve is written in {len(spec):,} characters; {_MAX_SPEC:,} must do")
    name, *parts = spec.strip().split(":")
    family = FAMILIES.get(name.strip())
    if family is None:
        raise UserError(f"unknown load curve {_short(name)}{nearest(name[:80], FAMILIES)}")
    values = _values(family, parts)
    duration, rate, begins_at, resolution = _shape(family, values)
    scale, compress, lead = (_float(values[key]) for key in ("scale", "compress", "lead"))
    lasts = duration / compress + lead
    if not MIN_SECONDS <= lasts <= MAX_SECONDS:
        raise UserError(
            f"{family.name}: lasts {lasts:g} s with compress={compress:g}; allowed are 1 s to 366 days"
        )
    rates = within(duration, rate, scale, compress, lead)
    return Curve(
        family.name, lasts, rates, _noise(values), begins_at - lead, DAY / compress, resolution / compress
    )


def _shape(family: Family, values: Mapping[str, Value]) -> tuple[float, RateFunction, float, float]:
    """Its duration, its rate at any time, the wall-clock time when it begins, and a trace's resolution."""
    if family.name == "trace":
        if not isinstance(values["path"], str):
            raise UserError("trace: which file? write trace:FILE.csv or trace:path=FILE.csv")
        trace = read_trace(Path(values["path"]))
        return _float(values["duration"] or trace.duration), trace.rate, trace.begins_at, trace.resolution
    own = {key.name: values[key.name] for key in family.keys}
    low, high = own.get("low"), own.get("high")
    if isinstance(low, float) and isinstance(high, float) and low > high:
        raise UserError(f"{family.name}: low={low:g} is above high={high:g}; swap them or raise high")
    if family.seeded:
        own["seed"] = values["seed"]
    begins_at = _float(own["start"]) if family.name in ("day", "week") else 0.0
    return _float(own["duration"]), family.build(**own), begins_at, 0.0


def _values(family: Family, parts: list[str]) -> dict[str, Value]:
    keys = {key.name: key for key in (*family.keys, *family.common())}
    given: dict[str, Value] = {}
    for index, part in enumerate(parts):
        if index == 0 and "path" in keys and "=" not in part:
            part = f"path={part}"  # noqa: PLW2901 - trace:FILE is short for trace:path=FILE
        name, equals, text = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise UserError(
                f"{family.name}: expected key=value, found {_short(part)}; keys: {', '.join(keys)}"
            )
        if name not in keys:
            raise UserError(f"{family.name}: unknown key {_short(name)}{nearest(name[:80], keys)}")
        if name in given:
            raise UserError(f"{family.name}: {name} is given twice")
        given[name] = _value(family.name, keys[name], text)
    if "dispersion" in given and given.get("noise") != "negbin":
        raise UserError(f"{family.name}: dispersion needs noise=negbin")
    return {name: given.get(name, key.default) for name, key in keys.items()}


def _value(curve: str, key: Key, text: str) -> Value:
    if key.kind == "word":
        if text not in key.words:
            raise UserError(f"{curve}: unknown {key.name} {_short(text)}{nearest(text[:80], key.words)}")
        return text
    if key.kind == "path":
        if not text or not text.isprintable():
            raise UserError(f"{curve}: {_short(text)} is not a usable file name")
        return text
    unit = _UNITS.get(text[-1:].lower(), 0.0) if key.kind == "time" else 0.0
    digits = text[:-1].strip() if unit else text
    if not _NUMBER.fullmatch(digits):
        wanted = "a duration such as 600, 90s, 10m, 2h or 1d" if key.kind == "time" else "a number"
        raise UserError(f"{curve}: {key.name} must be {wanted}, not {_short(text)}")
    value = float(digits) * (unit or 1.0)
    if not key.low <= value <= key.high:
        limits = f"from {key.low:g} to {key.high:.10g}"
        raise UserError(f"{curve}: {key.name} must be {limits}, not {_short(text)}")
    if key.kind == "whole" and value != math.floor(value):
        raise UserError(f"{curve}: {key.name} must be a whole number, not {_short(text)}")
    return value


def _noise(values: Mapping[str, Value]) -> Noise:
    kind = next(kind for kind in KINDS if kind == values["noise"])
    return Noise(kind, _float(values["dispersion"]), int(_float(values["seed"])))


def _float(value: Value) -> float:
    assert isinstance(value, float)
    return value


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")
