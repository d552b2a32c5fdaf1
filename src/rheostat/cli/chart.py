"""Line charts in text: braille dots for the first series, a mark per column for the others."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # braille bits by row and column
_MARKS = "×o+*#@"
_MINUTES = (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 10_080, 20_160, 43_200, 86_400)
_TIME_STEPS = (1, 2, 5, 10, 15, 30, *(60 * minutes for minutes in _MINUTES))
_UNITS = ((86_400, "d"), (3600, "h"), (60, "m"), (1, "s"))


def chart(series: Sequence[tuple[str, FloatArray]], x: FloatArray, width: int, height: int, unit: str) -> str:
    """Draw series over x (seconds): `height` rows of plot within `width` columns, both axes labelled."""
    step = _nice(max(float(values.max()) for _, values in series) / max(1, min(5, height // 3)))
    ticks = math.ceil(max(float(values.max()) for _, values in series) / step - 1e-9) or 1
    top = ticks * step
    labels = {_row(tick * step, top, height): _amount(tick * step) for tick in range(ticks + 1)}
    margin = max(map(len, labels.values()))
    columns = max(width - margin - 2, 10)
    plot = _braille(*_extremes(series[0][1], x, 2 * columns), top, height)
    for mark, (_, values) in zip(_MARKS, series[1:], strict=False):
        for column, value in enumerate(_extremes(values, x, columns)[1].tolist()):
            plot[_row(value, top, height)][column] = mark
    lines = [f"{unit:>{margin}}"]
    for row, cells in enumerate(plot):
        lines.append(f"{labels.get(row, ''):>{margin}} {'┤' if row in labels else '│'}{''.join(cells)}")
    lines += [" " * (margin + 1) + line for line in _time_axis(float(x[0]), float(x[-1]), columns)]
    if len(series) > 1:
        names = (f"{mark} {name}" for mark, (name, _) in zip("⠶" + _MARKS, series, strict=False))
        lines.append(" " * (margin + 2) + "   ".join(names))
    return "\n".join(line.rstrip() for line in lines)


def span(seconds: float) -> str:
    """Format a duration for people.

    >>> span(90), span(5400), span(86_400), span(0), span(-30)
    ('1m30s', '1h30m', '1d', '0', '-30s')
    """
    left, words = round(abs(seconds)), []
    for size, name in _UNITS:
        if left >= size:
            words.append(f"{left // size}{name}")
            left %= size
    return ("-" if seconds < 0 and words else "") + ("".join(words[:2]) or "0")


def _extremes(values: FloatArray, x: FloatArray, columns: int) -> tuple[FloatArray, FloatArray]:
    """Return the extremes per column, so that no spike is lost, joined to the column before."""
    centres = x[0] + (np.arange(columns) + 0.5) * (x[-1] - x[0]) / columns
    low = np.interp(centres, x, values)
    high = low.copy()
    column = np.searchsorted(centres[1:] - (centres[-1] - centres[-2]) / 2, x, side="right")
    np.minimum.at(low, column, values)
    np.maximum.at(high, column, values)
    joined_low, joined_high = low.copy(), high.copy()
    joined_low[1:] = np.minimum(low[1:], high[:-1])
    joined_high[1:] = np.maximum(high[1:], low[:-1])
    return joined_low, joined_high


def _braille(low: FloatArray, high: FloatArray, top: float, height: int) -> list[list[str]]:
    bits = np.zeros((height, low.size // 2), dtype=np.int64)
    dots = 4 * height - 1
    for column, (lowest, highest) in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
        for dot in range(round((1 - highest / top) * dots), round((1 - lowest / top) * dots) + 1):
            bits[dot // 4, column // 2] |= _DOTS[dot % 4][column % 2]
    return [[chr(0x2800 + cell) if cell else " " for cell in row] for row in bits.tolist()]


def time_ticks(first: float, last: float, at_most: float) -> list[int]:
    """Choose round times for a time axis.

    >>> time_ticks(0, 1800, 7)
    [0, 300, 600, 900, 1200, 1500, 1800]
    """
    step = next((s for s in _TIME_STEPS if (last - first) / s <= at_most), _TIME_STEPS[-1])
    return [tick * step for tick in range(math.ceil(first / step), math.floor(last / step + 1e-9) + 1)]


def _time_axis(first: float, last: float, columns: int) -> tuple[str, str]:
    line, labels = ["─"] * columns, [" "] * columns
    for tick in time_ticks(first, last, columns / 10):
        column = round((tick - first) / max(last - first, 1e-9) * (columns - 1))
        label = span(tick)
        start = max(0, min(columns - len(label), column - len(label) // 2))
        line[column] = "┬"
        labels[start : start + len(label)] = label
    return "└" + "".join(line), " " + "".join(labels)


def _row(value: float, top: float, height: int) -> int:
    return round((1 - value / top) * (4 * height - 1)) // 4


def _nice(value: float) -> float:
    """Round up to a number that reads well on an axis."""
    if value <= 0:
        return 1.0
    power: float = 10.0 ** math.floor(math.log10(value))
    return next(power * n for n in (1, 1.5, 2, 2.5, 3, 4, 5, 10) if power * n >= value * (1 - 1e-9))


def _amount(value: float) -> str:
    """Format a rate briefly.

    >>> _amount(2000.0), _amount(2.5), _amount(25e6)
    ('2,000', '2.5', '25M')
    """
    if value >= 1e6:
        return f"{value / 1e6:,.4g}M"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"
