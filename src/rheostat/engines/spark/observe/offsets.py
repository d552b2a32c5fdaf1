"""Reads the offsets of a batch's sources: which rows they stand for depends on the connector."""

import json
from collections.abc import Sequence
from typing import Any

from rheostat.engines.spark.events import MOST_BYTES, MOST_ID, SourceProgress


def backlog(sources: Sequence[SourceProgress]) -> float | None:
    """Rows that the sources hold beyond this batch, where their offsets count rows."""
    waiting = 0.0
    for source in sources:
        done, latest = _count(source.end_offset), _count(source.latest_offset)
        if done is None or latest is None:
            return None
        waiting += max(0.0, latest - done)
    return waiting if sources else None


def position(sources: Sequence[SourceProgress]) -> float | None:
    """Where a reader of Kafka stands, counted as the ends of its topics are; None: another source."""
    ends = [_count(source.end_offset) for source in sources if "Kafka" in source.description]
    known = [end for end in ends if end is not None]
    return sum(known) if known and len(known) == len(sources) else None


def end(sources: Sequence[SourceProgress]) -> float | None:
    """Where the sources stand: numInputRows would count twice the rows of a task that ran again."""
    read = position(sources)
    if read is not None or len(sources) != 1:
        return read
    offset = sources[0].end_offset
    return float(offset) if type(offset) is int and 0 <= offset <= MOST_ID else None


def _count(offset: Any) -> float | None:
    """The rows that an offset counts: a Kafka topic's per partition, or one number under a name."""
    if isinstance(offset, str):
        try:
            offset = json.loads(offset)
        except (ValueError, RecursionError):
            return None
    if not isinstance(offset, dict):
        return None  # a bare number may be anything: the rate source counts seconds
    total = 0.0
    for value in offset.values():
        if isinstance(value, bool):
            return None
        part = value if isinstance(value, int | float) else _count(value)
        if part is None or not 0 <= part <= MOST_BYTES:
            return None
        total += part
    return total
