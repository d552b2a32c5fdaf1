"""The throughput that P4 means: what the last operators of a topology finish, in their own rows."""

from collections.abc import Callable, Sequence

from rheostat.model.observation import Measure, Observation

LEAF_THROUGHPUT = "throughput of the leaves (rows/s)"  # as a decision expects it, and `explain` compares it
RECENT_SECONDS = 60.0


def recent(windows: Sequence[Observation], measured: Callable[[Observation], bool]) -> list[Observation]:
    """The windows of the last minute that measured something; where none did, the newest that did."""
    known = [window for window in windows if measured(window)]
    return [window for window in known if window.end > windows[-1].end - RECENT_SECONDS] or known[-1:]


def leaf_throughput(windows: Sequence[Observation], *, lately: bool = False) -> Measure:
    """Rows/s that the operators without outputs finished; None if one was never measured.

    By all of these windows, or `lately`: each operator by its own recent ones.
    """
    names = windows[-1].operators if windows else {}
    inner = {name for window in windows for name, measures in window.operators.items() if measures.emitted}
    rate_of = recent_rate if lately else processed_rate
    rates = [rate_of(windows, name) for name in names if name not in inner]
    known = [rate for rate in rates if rate is not None]
    return sum(known) if known and len(known) == len(rates) else None


def recent_rate(windows: Sequence[Observation], operator: str) -> Measure:
    """Rows/s that an operator processed lately."""

    def measured(window: Observation) -> bool:
        return operator in window.operators and _rows_and_seconds(window, operator) is not None

    return processed_rate(recent(windows, measured), operator)


def processed_rate(windows: Sequence[Observation], operator: str) -> Measure:
    """Rows/s that an operator processed, by the windows in which batches with its rows ended."""
    pairs = [_rows_and_seconds(window, operator) for window in windows if operator in window.operators]
    measured = list(filter(None, pairs))
    seconds = sum(seconds for _, seconds in measured)
    return sum(rows for rows, _ in measured) / seconds if seconds > 0 else None


def _rows_and_seconds(window: Observation, operator: str) -> tuple[float, float] | None:
    """What an operator processed, and in which time: its batches', which may have begun before the window.

    That time is what the throughput of its query, counted in the rows of its first operator, shows.
    """
    head, application = _head(window, operator), window.application
    if head in window.queries:
        application = window.queries[head]
    rows, first = window.operators[operator].processed, window.operators[head].processed
    if rows is None or first is None:
        return None
    of_one_source = head in window.queries or len(application.load) == 1
    if application.throughput and first and of_one_source:
        return rows, first / application.throughput
    return rows, window.seconds


def _head(window: Observation, operator: str) -> str:
    """The first operator of its query; a query of several is named after it."""
    parents = {below: name for name, measures in window.operators.items() for below in measures.emitted}
    head = operator
    while head in parents and head not in window.queries:
        head = parents[head]
    return head
