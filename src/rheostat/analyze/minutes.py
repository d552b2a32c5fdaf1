"""The load of the last minutes, whatever the length of the measured windows (P2, section 3.2)."""

from collections.abc import Sequence

MINUTE = 60.0
PIECE_SECONDS = 9.0  # the paper stores a mean every ten seconds; a timer may fire a little early

Piece = list[float]  # start, end, rows/s: plain JSON data


def remember(pieces: Sequence[Piece], start: float, end: float, load: float, minutes: int) -> list[Piece]:
    """Add a window and drop those that are too old; short windows are merged to bound the memory.

    >>> remember([[0.0, 4.0, 100.0]], 4.0, 8.0, 200.0, minutes=3)
    [[0.0, 8.0, 150.0]]
    """
    kept = [piece for piece in pieces if end - MINUTE * minutes < piece[1] <= start]
    if kept and start - kept[-1][0] < PIECE_SECONDS:
        first, last, mean = kept.pop()
        rows = mean * (last - first) + load * (end - start)
        start, load = first, rows / (last - first + end - start)
    return [*kept, [start, end, load]]


def minute_means(pieces: Sequence[Piece], minutes: int) -> list[tuple[float, float]]:
    """The mean load of each of the last minutes, if at least half of it was measured, with the minute's end.

    >>> minute_means([[0.0, 60.0, 100.0], [60.0, 120.0, 300.0]], minutes=5)
    [(60.0, 100.0), (120.0, 300.0)]
    """
    history = []
    for number in range(1 - minutes, 1):
        until = pieces[-1][1] + MINUTE * number
        shared = [
            (max(0.0, min(end, until) - max(start, until - MINUTE)), load) for start, end, load in pieces
        ]
        seconds = sum(part for part, _ in shared)
        if seconds >= MINUTE / 2:
            history.append((until, sum(part * load for part, load in shared) / seconds))
    return history
