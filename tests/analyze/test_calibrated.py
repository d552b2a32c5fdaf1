"""What is called the 90 % quantile holds 90 % of the time, and is not stated before that can be known."""

import numpy as np
import pytest

from rheostat.analyze.forecasts.calibrated import HIGH, LEVELS, LOW, Calibrated
from rheostat.analyze.forecasts.forecast import MEDIAN
from rheostat.analyze.forecasts.forecaster import Memory
from rheostat.analyze.forecasts.last import Last
from rheostat.analyze.forecasts.line import LeastSquares

LAST = Calibrated(Last(), steps=5)


def after(rates: list[float], calibrated: Calibrated = LAST) -> Memory:
    memory: Memory = {}
    for minute, rate in enumerate(rates, start=1):
        memory = calibrated.observe(memory, 60.0 * minute, rate)
    return memory


def held(rates: list[float], ahead: int, level: float, calibrated: Calibrated = LAST) -> float:
    """The share of the later half of the loads that were at most what was stated so many steps before."""
    memory: Memory = {}
    stated: list[float] = []
    for minute, rate in enumerate(rates, start=1):
        memory = calibrated.observe(memory, 60.0 * minute, rate)
        forecast = calibrated.forecast(memory, 60.0 * minute, ahead)
        assert forecast is not None
        known = forecast.knows(level)
        stated.append(forecast.path(level)[-1] if known else np.nan)
    half = len(rates) // 2
    return float(np.mean(np.array(rates[half:]) <= np.array(stated[half - ahead : -ahead])))


@pytest.mark.parametrize("ahead", [1, 5])
@pytest.mark.parametrize(("level", "share"), [(LOW, 0.1), (HIGH, 0.9)])
def test_a_quantile_holds_as_often_as_it_says_on_noise_and_on_a_walk(
    level: float, share: float, ahead: int
) -> None:
    draw = np.random.default_rng(1)
    noise = (500 + 50 * draw.standard_normal(2_000)).tolist()
    walk = (5_000 + np.cumsum(10 * draw.standard_normal(2_000))).tolist()
    for rates in (noise, walk):
        assert held(rates, ahead, level) == pytest.approx(share, abs=0.03)


def test_it_holds_although_the_errors_grow_tenfold_every_few_hours() -> None:
    draw = np.random.default_rng(2)
    spread = np.where(np.arange(4_000) // 200 % 2, 100.0, 10.0)
    rates = (2_000 + spread * draw.standard_normal(4_000)).tolist()
    assert held(rates, 1, HIGH) == pytest.approx(0.9, abs=0.015)


def test_a_method_that_is_always_too_high_is_corrected() -> None:
    class TooHigh(Last):
        def forecast(self, memory, now, steps, local_start=0.0):  # type: ignore[no-untyped-def]
            return super().forecast({"last": 2 * memory["last"]}, now, steps) if memory else None

    forecast = (calibrated := Calibrated(TooHigh(), steps=1)).forecast(
        after([500.0] * 50, calibrated), 3_000.0, 1
    )
    assert forecast is not None
    assert forecast.values == ((500.0, 500.0, 500.0),)


def test_with_too_few_errors_there_is_no_band() -> None:
    # Of n errors, that of rank ceil(0.9 (n + 1)) is needed: there is none before n = 9, with ten loads.
    for loads, levels in ((9, (MEDIAN,)), (10, LEVELS)):
        forecast = LAST.forecast(after([500.0 + loads] * loads), 60.0 * loads, 1)
        assert forecast is not None
        assert forecast.levels == levels
    few = LAST.forecast(after([500.0] * 10), 600.0, 5)  # five steps ahead it has but five errors
    assert few is not None and few.levels == (MEDIAN,)


def test_an_error_counts_for_the_steps_ahead_that_it_was_made_with() -> None:
    # A steady rise: the last value is 10 too low one step ahead, and 50 five steps ahead.
    forecast = LAST.forecast(after([10.0 * minute for minute in range(100)]), 6_000.0, 5)
    assert forecast is not None
    assert forecast.path(HIGH) == pytest.approx((1_000.0, 1_010.0, 1_020.0, 1_030.0, 1_040.0))


def test_a_minute_that_was_not_measured_makes_no_error() -> None:
    memory = after([500.0] * 20)
    later = LAST.observe(memory, 60.0 * 23, 500.0)  # two minutes are missing
    assert later["errors"][-1] == [None, None, 0.0, 0.0, 0.0]
    assert LAST.observe(memory, 60.0 * 500, 500.0)["errors"][-1] == [None] * 5


def test_beyond_the_calibrated_steps_the_errors_are_those_of_the_last() -> None:
    forecast = LAST.forecast(after([10.0 * minute for minute in range(100)]), 6_000.0, 7)
    assert forecast is not None
    assert forecast.path(HIGH)[-3:] == pytest.approx((1_040.0, 1_040.0, 1_040.0))


def test_a_method_that_knows_nothing_yet_gives_no_forecast() -> None:
    line = Calibrated(LeastSquares())
    assert line.forecast(after([1.0, 2.0], line), 120.0, 3) is None
    assert line.forecast({}, 0.0, 3) is None


def test_what_it_remembers_is_bounded() -> None:
    memory = after([500.0] * 400)
    assert len(memory["errors"]) == LAST.window
    assert len(memory["issued"]) == LAST.steps
