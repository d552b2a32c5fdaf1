"""P2, section 3.2: the input load is profiled as means of one minute."""

import pytest

from rheostat.analyze.minutes import Piece, minute_means, remember


def measured(seconds: float, loads: list[float], minutes: int = 10) -> list[Piece]:
    pieces: list[Piece] = []
    for turn, load in enumerate(loads):
        pieces = remember(pieces, seconds * turn, seconds * (turn + 1), load, minutes)
    return pieces


@pytest.mark.parametrize("seconds", [1, 5, 10, 30, 60])
def test_the_means_do_not_depend_on_how_often_a_policy_is_asked(seconds: int) -> None:
    loads = [100.0 * (1 + turn * seconds // 60) for turn in range(240 // seconds)]
    history = minute_means(measured(seconds, loads), minutes=10)
    assert [end for end, _ in history] == [60, 120, 180, 240]
    # Windows of a second are kept in pieces of nine, of which some lie in two minutes.
    assert [load for _, load in history] == pytest.approx(
        [100, 200, 300, 400], rel=0.05 if seconds == 1 else 1e-9
    )


def test_windows_longer_than_a_minute_count_for_each_of_their_minutes() -> None:
    history = minute_means(measured(150, [100.0, 500.0]), minutes=10)
    assert [end for end, _ in history] == [60, 120, 180, 240, 300]
    assert [load for _, load in history] == pytest.approx([100, 100, 300, 500, 500])


@pytest.mark.parametrize("seconds", [0.1, 1, 7, 10, 60, 600])
def test_memory_is_bounded_however_short_the_windows_are(seconds: float) -> None:
    pieces = measured(seconds, [1.0] * 7_000)
    assert len(pieces) <= 10 * 60 / 9 + 1
    assert pieces[0][1] > pieces[-1][1] - 600


def test_a_minute_of_which_little_was_measured_is_left_out() -> None:
    before = [[0.0, 60.0, 100.0]]
    assert minute_means(remember(before, 130.0, 140.0, 300.0, 10), minutes=10) == [(80.0, 100.0)]
    assert minute_means(remember(before, 105.0, 140.0, 300.0, 10), minutes=10) == [
        (80.0, 100.0),
        (140.0, 300.0),
    ]


def test_a_clock_that_went_back_forgets_what_would_be_the_future() -> None:
    assert remember([[600.0, 660.0, 5.0]], 0.0, 60.0, 7.0, 10) == [[0.0, 60.0, 7.0]]
