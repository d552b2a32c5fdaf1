"""Draws that are always the same for the same thing, so that what a row says follows from its number."""

from pyspark.sql import Column
from pyspark.sql import functions as F

_DRAWS = 1_000_003


def luck(of: str | Column, *which: int) -> Column:
    """A number in [0, 1); `which` tells one draw for a thing from another."""
    return F.pmod(F.xxhash64(of, *map(F.lit, which)), F.lit(_DRAWS)) / _DRAWS
