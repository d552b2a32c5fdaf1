"""Loads as files: CSV with the header time,rate; times in seconds or ISO 8601, increasing."""

import io
import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

from rheostat.model.errors import FileError, UserError
from rheostat.model.files import write_whole
from rheostat.workloads.curve import Curve, FloatArray, sample

MAX_BYTES = 10 * 1024 * 1024
MAX_SPAN_SECONDS = 366 * 86_400.0
MAX_RATE = 1e9
HEADER = "time,rate"
SECONDS, LOCAL, ZONED = "seconds", "timestamps without a zone", "timestamps with a zone"
_EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class Trace:
    """A recorded load: straight lines between its points, its first point at second 0."""

    seconds: FloatArray
    rates: FloatArray
    begins_at: float = 0.0  # of timestamps: local time of the first, in seconds since midnight on Monday

    @property
    def duration(self) -> float:
        """The time from the first point to the last."""
        return float(self.seconds[-1])

    @property
    def resolution(self) -> float:
        """The usual time between two points."""
        return float(np.median(np.diff(self.seconds)))

    def rate(self, t: FloatArray) -> FloatArray:
        """Interpolate; before the first and after the last point, their rates apply."""
        return np.interp(t, self.seconds, self.rates)


def read_trace(path: Path) -> Trace:
    """Read a trace; FileError names the line that is wrong."""
    times: list[float] = []
    rates: list[float] = []
    clocks: set[str] = set()
    for line, text in _rows(path):
        place = f"{path}: line {line}"
        fields = text.split(",")
        if len(fields) != 2:
            raise FileError(f"{place}: expected two fields, time and rate, found {len(fields)}")
        seconds, clock = _time(place, fields[0].strip())
        clocks.add(clock)
        if len(clocks) > 1:
            raise FileError(
                f"{place}: the time is in {clock}, unlike the lines above; use one form throughout"
            )
        if times and seconds <= times[-1]:
            raise FileError(f"{place}: its time is not after that of the line above; sort the rows by time")
        times.append(seconds)
        rates.append(_rate(place, fields[1].strip()))
    if len(times) < 2:
        raise FileError(f"{path}: line {len(times) + 1}: a trace needs at least two rows, found {len(times)}")
    if times[-1] - times[0] > MAX_SPAN_SECONDS:
        raise FileError(f"{path}: line {len(times) + 1}: the trace spans more than 366 days")
    seconds_from_first: FloatArray = np.array(times) - times[0]
    if (np.diff(seconds_from_first) <= 0).any():
        raise FileError(f"{path}: the times are too close to tell apart; write them from 0")
    return Trace(seconds_from_first, np.array(rates), _local_time(times[0], clocks.pop()))


def write_trace(curve: Curve, path: Path, step_seconds: float = 1.0, seed: int = 0) -> int:
    """Write a curve's samples as a trace that `read_trace` accepts; return the number of rows.

    The last rate is repeated at the very end, so that the trace lasts as long as the curve.
    """
    rates = sample(curve, step_seconds, seed)
    times = np.append(np.arange(rates.size) * step_seconds, curve.duration_seconds)
    out = io.StringIO()
    out.write(HEADER + "\n")
    for time, rate in zip(times.tolist(), [*rates.tolist(), float(rates[-1])], strict=True):
        out.write(f"{time:.12g},{rate:.10g}\n")
    data = out.getvalue().encode()
    if len(data) > MAX_BYTES:
        needed = step_seconds * math.ceil(len(data) / MAX_BYTES)
        raise UserError(f"{path}: would be larger than 10 MB; give a longer step, such as --step {needed:g}")
    write_whole(path, data)
    return times.size


def _rows(path: Path) -> Iterator[tuple[int, str]]:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise FileError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > MAX_BYTES:
        raise FileError(f"{path}: larger than 10 MB; thin the trace out, one row a minute is plenty")
    try:
        lines = data.decode("utf-8-sig").replace("\r\n", "\n").split("\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FileError(f"{path}: line {line}: not UTF-8 text") from None
    if not any(line.strip() for line in lines):
        raise FileError(f"{path}: line 1: the file is empty; its header must be {HEADER}")
    if lines[0].replace(" ", "").lower() != HEADER:
        raise FileError(f"{path}: line 1: the header must be {HEADER}, not {lines[0][:40]!r}")
    return ((number, text) for number, text in enumerate(lines[1:], 2) if text.strip())


def _time(place: str, text: str) -> tuple[float, str]:
    try:
        seconds = float(text)
    except ValueError:
        return _clock(place, text)
    if not math.isfinite(seconds):
        raise FileError(f"{place}: time {text[:40]!r} is not a finite number")
    return seconds, SECONDS


def _clock(place: str, text: str) -> tuple[float, str]:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise FileError(f"{place}: time {text[:40]!r} is neither seconds nor an ISO timestamp") from None
    if moment.tzinfo is None:  # assumed to be local time
        return (moment - _EPOCH).total_seconds(), LOCAL
    return moment.timestamp(), ZONED


def _local_time(seconds: float, clock: str) -> float:
    """A time as seconds since midnight on Monday; plain seconds have no relation to the clock."""
    if clock == SECONDS:
        return 0.0
    moment = datetime.fromtimestamp(seconds) if clock == ZONED else _EPOCH + timedelta(seconds=seconds)
    midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    return moment.weekday() * 86_400.0 + (moment - midnight).total_seconds()


def _rate(place: str, text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        raise FileError(f"{place}: rate {text[:40]!r} is not a number") from None
    if math.isnan(rate):
        raise FileError(f"{place}: the rate is NaN; leave the row out, its neighbours are joined")
    if not 0 <= rate <= MAX_RATE:
        raise FileError(f"{place}: the rate must be from 0 to {MAX_RATE:g} rows/s, not {text[:40]}")
    return rate
