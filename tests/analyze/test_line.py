import pytest
from hypothesis import given
from hypothesis import strategies as st

from rheostat.analyze.forecasts.line import LeastSquares, Line, fit


def test_nothing_is_flat_at_zero() -> None:
    assert fit([], []) == Line(0.0, 0.0)


def test_points_at_one_moment_are_flat_at_their_mean() -> None:
    assert fit([5.0], [7.0]) == Line(7.0, 0.0)
    assert fit([5.0, 5.0], [6.0, 8.0]) == Line(7.0, 0.0)


def test_scattered_points_give_the_least_squares_line() -> None:
    line = fit([0, 1, 2, 3], [1, 3, 2, 4])
    assert (line.intercept, line.slope) == pytest.approx((1.3, 0.8))
    assert line.at(10) == pytest.approx(9.3)


@given(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3))
def test_points_on_a_line_give_that_line(intercept: float, slope: float) -> None:
    line = fit([0, 30, 60, 90], [intercept + slope * x for x in (0, 30, 60, 90)])
    assert (line.intercept, line.slope) == pytest.approx((intercept, slope), abs=1e-6)


def test_series_of_different_lengths_are_a_programming_error() -> None:
    with pytest.raises(ValueError, match="shorter"):
        fit([0, 1, 2], [1, 2])


def test_a_history_that_is_too_short_gives_no_forecast() -> None:
    history = [(0.0, 10.0), (60.0, 20.0)]
    assert LeastSquares(3).line(history) is None
    assert LeastSquares(2).line(history) == fit([0, 60], [10, 20])
