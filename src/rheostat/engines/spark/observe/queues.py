"""The queue before the first operator of a query, where its source tells what it holds. Pure: no clock.

Rows that collect for the next trigger do not wait, as long as it comes in time. In micro-batch a row is done
in time if it is taken within one trigger interval and worked on within another.
"""

from rheostat.engines.spark.observe.arrivals import rows_offered
from rheostat.engines.spark.observe.batch_window import BatchWindow, arrived
from rheostat.engines.spark.observe.batches import Batch


def waiting(window: BatchWindow) -> float | None:
    """Rows that the source holds beyond the last batch that began; None: it does not tell."""
    ended = _ended(window, window.now)
    held = _held(window, ended[-1]) if ended else None
    if held is None or window.realtime:
        return held
    began = last_began = ended[-1].started
    if window.running_since is not None and window.running_since > last_began:
        began = window.running_since
        came = rows_offered(window, last_began, began) or 0.0
        # It takes all, unless the reader has a limit, which left rows the last time, too.
        held = max(0.0, held + came - ended[-1].input_rows) if held else 0.0
    if rows_offered(window, began, window.now - window.due_seconds):
        held += rows_offered(window, began, window.now) or 0.0
    return held


def received(window: BatchWindow) -> float | None:
    """Rows that arrived for the window's batches, with those that became overdue in it.

    While batches are in time, these are as many as the batches took, however a window cuts them. Where rows
    come faster than they are worked on, they are more: by what waits, and by what a late batch took.
    """
    rows = arrived(window)
    if rows is None or window.realtime:
        return rows
    before = 0.0 if window.stale else _overdue(window, window.start)
    return max(0.0, rows + _overdue(window, window.now) - before)


def _overdue(window: BatchWindow, at: float) -> float:
    """Rows that should have been done by then, as far as the source tells."""
    ended = _ended(window, at)
    if not ended or _held(window, ended[-1]) is None:
        return 0.0
    return rows_offered(window, ended[-1].started, at - 2 * window.due_seconds) or 0.0


def _ended(window: BatchWindow, at: float) -> list[Batch]:
    return [batch for batch in (*filter(None, [window.before]), *window.batches) if batch.finished <= at]


def _held(window: BatchWindow, batch: Batch) -> float | None:
    """Rows beyond a batch; those whose source counts, but has no offsets of rows, take all that there is."""
    return 0.0 if batch.backlog is None and window.offered and not window.realtime else batch.backlog
