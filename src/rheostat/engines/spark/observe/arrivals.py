"""When rows arrived at the source of a query: the load, and its line within a window. Pure: no clock.

A source's own count tells it as it happens. Where there is none, the rows of a batch came between the trigger
before it and its own: then a batch that grows under a constant load shows no rise.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rheostat.engines.spark.observe.batch_window import BatchWindow, arrived, moment_of, offered_between
from rheostat.engines.spark.observe.batches import Batch
from rheostat.model.observation import ARRIVAL_PARTS


def load(window: BatchWindow) -> float | None:
    """Rows/s that arrived, processed yet or not: by the source's own count, else from trigger to trigger."""
    since, until = _counted(window)
    if until > since:
        offered, worth = offered_between(window.offered, since, until), rows_per_count(window)
        if worth is not None:
            return worth * offered / (until - since)
        if offered and not arrived(window):
            return None  # the first rows of all: the source may count anything
    rows, (since, until) = arrived(window), _span(window)
    return rows / (until - since) if rows is not None and until > since else None


def rows_per_count(window: BatchWindow) -> float | None:
    """What a source counts may be other things than rows: the latest batches show how many rows each is."""
    latest = [batch for batch in window.latest if batch.started >= moment_of(window.offered, 0)]
    if not window.offered or len(latest) < 2:
        return None
    compared = replace(window, before=latest[0], batches=tuple(latest[1:]))
    rows, counted = arrived(compared), offered_between(window.offered, *_span(compared))
    return rows / counted if rows and counted > 0 else None


def rows_offered(window: BatchWindow, since: float, until: float) -> float | None:
    """Rows that arrived between two moments, by the source's own count if it reaches back so far."""
    worth, rate = rows_per_count(window), load(window)
    if worth is not None and moment_of(window.offered, 0) <= since:
        return worth * max(0.0, offered_between(window.offered, since, until))
    return None if rate is None else rate * max(0.0, until - since)


def arrivals(window: BatchWindow) -> tuple[float, ...]:
    """Rows that arrived in equal parts of the window; empty: not known."""
    parts = _by_count(window)
    return tuple((_by_batches(window) if parts is None else parts).tolist())


def _counted(window: BatchWindow) -> tuple[float, float]:
    """The part of the window that the source's own count covers."""
    first, last = moment_of(window.offered, 0), moment_of(window.offered, -1)
    return max(window.start, first), min(window.now, last)


def _by_count(window: BatchWindow) -> NDArray[np.float64] | None:
    since, until = _counted(window)
    seconds = window.now - window.start
    if until <= since or until - since < seconds * (1 - 1 / ARRIVAL_PARTS):
        return None
    parts = _cut([at for at, _ in window.offered], [count for _, count in window.offered], since, until)
    worth = rows_per_count(window) if parts.any() else 1.0
    if worth is None or parts.min() < 0:  # a source that was restarted may count anew
        return None
    return parts * (worth * seconds / (until - since))


def _by_batches(window: BatchWindow) -> NDArray[np.float64]:
    batches = (*filter(None, [window.before]), *window.batches)
    times = [_taken_at(window, batch) for batch in batches]
    if len(times) < 2 or times[-1] <= times[0]:
        return np.empty(0)
    held = [batch.backlog for batch in batches]
    rows = np.cumsum([0.0, *(batch.input_rows for batch in batches[1:])])
    if None not in held:
        rows = rows + np.array(held, dtype=np.float64)
    parts = _cut(times, np.maximum.accumulate(rows), times[0], times[-1])
    return parts * ((window.now - window.start) / (times[-1] - times[0]))


def _cut(
    times: list[float], counts: list[float] | NDArray[np.float64], since: float, until: float
) -> NDArray[np.float64]:
    """What was counted in equal parts of the time."""
    borders = np.linspace(since, until, ARRIVAL_PARTS + 1)
    return np.diff(np.interp(borders, times, counts))


def _span(window: BatchWindow) -> tuple[float, float]:
    """The moments between which the rows of its batches arrived; 0 and 0 if there are too few batches."""
    first = window.before or (window.batches[0] if len(window.batches) > 1 else None)
    if first is None or not window.batches:
        return 0.0, 0.0
    return _taken_at(window, first), _taken_at(window, window.batches[-1])


def _taken_at(window: BatchWindow, batch: Batch) -> float:
    """Until when a batch took rows: in Real-Time Mode to its end."""
    return batch.finished if window.realtime else batch.started
