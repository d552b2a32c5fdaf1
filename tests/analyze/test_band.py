"""A forecast is dropped when more loads lie outside its band than its levels allow (P0, section 5.3)."""

import numpy as np
import pytest

from rheostat.analyze.forecasts.band import Band
from rheostat.analyze.forecasts.calibrated import LEVELS
from rheostat.analyze.forecasts.forecast import MEDIAN, Forecast
from rheostat.analyze.forecasts.forecaster import Memory

BAND = Band()
EXPECTED = Forecast(0.0, 60.0, LEVELS, ((100.0, 200.0, 300.0),))


def after(*rates: float) -> Memory:
    memory: Memory = {}
    for rate in rates:
        memory = BAND.observe(memory, EXPECTED, 60.0, rate)
    return memory


def test_a_few_loads_outside_are_chance() -> None:
    assert BAND.alert(after(*[200.0] * 8, 350.0, 50.0, 350.0, 50.0)) is None
    assert BAND.alert({}) is None


@pytest.mark.parametrize(("rate", "word"), [(350.0, "above"), (50.0, "below")])
def test_too_many_on_one_side_drop_it_and_say_so(rate: float, word: str) -> None:
    assert BAND.alert(after(*[200.0] * 7, *[rate] * 5)) is None  # chance brings five of twelve in 4 of 1,000
    alert = BAND.alert(after(*[200.0] * 6, *[rate] * 6))
    assert alert == f"6 of the last 12 loads were {word} the forecast, 1.2 may be: the forecast is dropped"


def test_four_in_a_row_are_enough() -> None:
    assert BAND.alert(after(350.0, 350.0)) is None
    assert BAND.alert(after(350.0, 350.0, 350.0, 350.0)) is not None


def test_it_counts_again_once_the_load_is_back() -> None:
    assert BAND.alert(after(*[350.0] * 12)) is not None
    assert BAND.alert(after(*[350.0] * 12, *[200.0] * 8)) is None


def test_a_forecast_without_a_band_counts_neither_way() -> None:
    bare = Forecast(0.0, 60.0, (MEDIAN,), ((200.0,),))
    memory = after(350.0, 350.0)
    assert BAND.observe(memory, bare, 60.0, 9_000.0) == memory
    assert BAND.observe(memory, None, 60.0, 9_000.0) == memory


def test_a_band_that_holds_is_rarely_dropped() -> None:
    draw = np.random.default_rng(0)
    memory: Memory = {}
    alerts = 0
    for rate in draw.uniform(75.0, 325.0, 5_000).tolist():  # a tenth of them on each side
        memory = BAND.observe(memory, EXPECTED, 60.0, rate)
        alerts += BAND.alert(memory) is not None
    assert alerts < 25
