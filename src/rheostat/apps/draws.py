"""Pseudo-random numbers that depend on their input alone, so that a row's content follows from its number."""

from pyspark.sql import Column
from pyspark.sql import functions as F

_VALUES = 1_000_003


def draw(of: str | Column, *numbers: int) -> Column:
    """Return a number in [0, 1); `numbers` distinguish several draws for the same input."""
    return F.pmod(F.xxhash64(of, *map(F.lit, numbers)), F.lit(_VALUES)) / _VALUES
