"""Numbers of a curve as a file gives them."""

from collections.abc import Iterable
from math import isfinite
from typing import Any


def number(value: Any) -> float:
    """A finite number, else ValueError.

    >>> number(2), number("2")
    Traceback (most recent call last):
    ValueError: '2' is not a number
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise ValueError(f"{value!r} is not a number")
    return float(value)


def numbers(values: Iterable[Any]) -> tuple[float, ...]:
    """The same of each."""
    return tuple(number(value) for value in values)
