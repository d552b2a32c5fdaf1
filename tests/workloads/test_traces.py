from datetime import UTC, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rheostat.model.errors import FileError, UserError
from rheostat.workloads import parse_curve, sample
from rheostat.workloads.traces import read_trace, write_trace

ZONES = st.sampled_from([None, UTC, timezone(timedelta(hours=14)), timezone(timedelta(hours=-12))])
EXAMPLES = Path(__file__).parents[2] / "examples" / "traces"


def _file(folder: Path, text: str) -> Path:
    path = folder / "load.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_trace_is_joined_by_straight_lines_from_its_first_moment(tmp_path: Path) -> None:
    path = _file(tmp_path, "time,rate\n100,10\n110,20\n130,0\n")
    curve = parse_curve(f"trace:{path}")
    assert curve.duration_seconds == 30
    assert [curve.at(t) for t in (-5, 0, 5, 10, 20, 99)] == [10, 10, 15, 20, 10, 0]


def test_timestamps_may_carry_different_zones(tmp_path: Path) -> None:
    text = "time,rate\n2026-03-02T10:00:00+02:00,5\n2026-03-02T08:01:00Z,6\n"
    assert read_trace(_file(tmp_path, text)).seconds.tolist() == [0, 60]


def test_windows_line_ends_spaces_blank_lines_and_a_byte_order_mark_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "load.csv"
    path.write_bytes(b"\xef\xbb\xbfTime, Rate\r\n 0 , 1 \r\n\r\n5,2\r\n")
    assert read_trace(path).rates.tolist() == [1, 2]


def test_a_trace_can_be_cut_scaled_and_compressed(tmp_path: Path) -> None:
    path = _file(tmp_path, "time,rate\n0,0\n100,100\n")
    curve = parse_curve(f"trace:path={path}:duration=50:scale=2:compress=5")
    assert curve.duration_seconds == 10
    assert curve.at(10) == 100


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1: the file is empty"),
        ("\n\n", "line 1: the file is empty"),
        ("0,1\n1,2\n", "line 1: the header must be time,rate"),
        ("seconds,rows\n0,1\n", "line 1: the header must be time,rate, not 'seconds,rows'"),
        ("time,rate\n", "line 1: a trace needs at least two rows, found 0"),
        ("time,rate\n0,1\n", "line 2: a trace needs at least two rows, found 1"),
        ("time,rate\n0,1\n2,3\n1,2\n", "line 4: its time is not after that of the line above"),
        ("time,rate\n0,1\n0,2\n", "line 3: its time is not after"),
        ("time,rate\n0,1\n1,-2\n", "line 3: the rate must be from 0"),
        ("time,rate\n0,1\n1,nan\n", "line 3: the rate is NaN"),
        ("time,rate\n0,1\n1,inf\n", "line 3: the rate must be from 0"),
        ("time,rate\n0,1\nnan,1\n", "line 3: time 'nan' is not a finite number"),
        ("time,rate\n0,1\n1,lots\n", "line 3: rate 'lots' is not a number"),
        ("time,rate\n0,1\n1\n", "line 3: expected two fields"),
        ("time,rate\n0,1\n1,2,3\n", "line 3: expected two fields, time and rate, found 3"),
        ("time,rate\n0,1\nnoon,1\n", "line 3: time 'noon' is neither seconds nor an ISO timestamp"),
        ("time,rate\n0,1\n2026-01-01,1\n", "line 3: the time is in timestamps without a zone, unlike"),
        ("time,rate\n0,1\n1e9,1\n", "line 3: the trace spans more than 366 days"),
    ],
)
def test_a_bad_trace_is_refused_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(FileError) as caught:
        read_trace(_file(tmp_path, text))
    assert said in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / "load.csv"))


def test_a_trace_larger_than_10_mb_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="larger than 10 MB"):
        read_trace(_file(tmp_path, "time,rate\n" + "0,1\n" * 2_700_000))


def test_a_binary_file_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "load.csv"
    path.write_bytes(b"time,rate\n0,1\n\xff\xfe,2\n")
    with pytest.raises(FileError, match="line 3: not UTF-8"):
        read_trace(path)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=80), st.booleans())
def test_no_file_whatever_raises_anything_but_a_file_error(tmp_path: Path, data: bytes, headed: bool) -> None:
    path = tmp_path / "any.csv"
    path.write_bytes((b"time,rate\n" if headed else b"") + data)
    try:
        trace = read_trace(path)
    except FileError as error:
        assert "any.csv" in str(error)
    else:
        assert (np.diff(trace.seconds) > 0).all()


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.datetimes(timezones=ZONES), st.floats(0, 10)), max_size=4))
def test_any_timestamps_are_read_or_refused(tmp_path: Path, rows: list[tuple[object, float]]) -> None:
    text = "".join(f"{moment},{rate!r}\n" for moment, rate in rows)
    try:
        trace = read_trace(_file(tmp_path, "time,rate\n" + text))
    except FileError as error:
        assert "load.csv" in str(error)
    else:
        assert trace.rates.tolist() == [rate for _, rate in rows]
        assert (np.diff(trace.seconds) > 0).all()


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(["sine", "square", "exponential:noise=poisson", "bursty:seed=3", "step:duration=61.5"]),
    st.sampled_from([0.5, 1.0, 7.0]),
)
def test_a_written_curve_reads_back_as_itself(tmp_path: Path, spec: str, step: float) -> None:
    path = tmp_path / "back.csv"
    curve = parse_curve(spec)
    rows = write_trace(curve, path, step, seed=4)
    back = parse_curve(f"trace:{path}")
    assert rows == sample(curve, step).size + 1
    assert back.duration_seconds == pytest.approx(curve.duration_seconds)
    assert sample(back, step) == pytest.approx(sample(curve, step, seed=4))


def test_a_trace_too_large_to_be_read_back_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--step 2"):
        write_trace(parse_curve("week"), tmp_path / "week.csv")
    assert not (tmp_path / "week.csv").exists()


def test_a_trace_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="cannot be written"):
        write_trace(parse_curve("sine"), tmp_path / "nowhere" / "sine.csv")


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.csv")), ids=lambda path: path.stem)
def test_the_example_traces_can_be_used(path: Path) -> None:
    assert parse_curve(f"trace:{path}").peak() > 1000


def test_a_trace_that_is_played_faster_has_closer_points_and_shorter_days(tmp_path: Path) -> None:
    path = tmp_path / "load.csv"
    path.write_text("time,rate\n0,1\n300,2\n600,3\n5000,4\n")
    curve = parse_curve(f"trace:{path}")
    assert (curve.resolution_seconds, curve.day_seconds) == (300.0, 86_400.0)
    fast = parse_curve(f"trace:{path}:compress=5")
    assert (fast.resolution_seconds, fast.day_seconds) == (60.0, 17_280.0)
    assert parse_curve("bursty").day_seconds == 1_440.0
