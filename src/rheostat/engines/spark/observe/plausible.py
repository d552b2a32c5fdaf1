"""Values out of Spark's events: what is missing, of another type, negative or beyond reason is absurd."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from rheostat.model.documents import storable

MOST_ROWS = 1e15  # of one batch
MOST_MS = 86_400_000.0  # of one batch
MOST_NS = 1e20  # of CPU, over all tasks of a stage
MOST_TASKS = 1e6
MOST_BYTES = 1e18
MOST_ID = 1e15


class AbsurdError(ValueError):
    """An event says what cannot be."""


def amount(about: Mapping[str, Any], key: str, most: float) -> float:
    """A number from 0 to `most`.

    >>> amount({"run_ms": 250}, "run_ms", 1e9)
    250.0
    """
    value = about.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        raise AbsurdError(f"{key} is {short(value)}")
    return float(value)


def count(about: Mapping[str, Any], key: str, most: float, least: int = 0) -> int:
    """A whole number from `least` to `most`."""
    value = amount(about, key, most)
    if value < least or value != int(value):
        raise AbsurdError(f"{key} is {short(about.get(key))}")
    return int(value)


def counted(about: Mapping[str, Any], key: str, most: float) -> int | None:
    """A whole number, or None where there is no sensible one."""
    try:
        return count(about, key, most)
    except AbsurdError:
        return None


def name(about: Mapping[str, Any], key: str) -> str:
    """A text that is not empty."""
    value = about.get(key)
    if not isinstance(value, str) or not value:
        raise AbsurdError(f"{key} is {short(value)}")
    return value


def moment(about: Mapping[str, Any], key: str) -> float:
    """A time as text, in unix seconds."""
    try:
        return datetime.fromisoformat(about[key]).timestamp()
    except (KeyError, TypeError, ValueError, OverflowError, OSError):
        raise AbsurdError(f"{key} is {short(about.get(key))}") from None


def mapping(about: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """A mapping; empty where there is none."""
    found = about.get(key)
    return found if isinstance(found, Mapping) else {}


def mappings(about: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """Those in a list that are mappings."""
    found = about.get(key)
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def short(value: object) -> str:
    """Any value in a few words.

    >>> short("x" * 100), short(None)
    ('xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...', 'missing')
    """
    text = "missing" if value is None else " ".join(str(value).split())
    return storable(text if len(text) <= 40 else f"{text[:37]}...")
