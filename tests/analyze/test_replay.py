"""The judged part of a load is forecast by what lies before each step, and by nothing else."""

import numpy as np
import pytest

from rheostat.analyze.forecasts import find_forecaster
from rheostat.analyze.forecasts.forecast import MEDIAN
from rheostat.analyze.forecasts.last import Last
from rheostat.analyze.forecasts.replay import Load, replay

DRAW = np.random.default_rng(3)
RATES = 500 + 300 * np.sin(np.arange(600) / 8) + 20 * DRAW.standard_normal(600)


def nothing(done: float) -> None:
    pass


@pytest.mark.parametrize("method", ["last", "line", "trend", "season", "network", "ar", "best"])
def test_what_comes_later_changes_no_forecast_made_before_it(method: str) -> None:
    changed = RATES.copy()
    changed[500:] = 5_000.0
    forecasts = [
        replay(method, find_forecaster(method), Load(rates, 60.0, 420), 5, nothing).forecasts
        for rates in (RATES, changed)
    ]
    assert forecasts[0][: 500 - 420] == forecasts[1][: 500 - 420]
    assert forecasts[0][500 - 420 :] != forecasts[1][500 - 420 :]


def test_the_error_is_the_mean_absolute_error_over_the_mean_load() -> None:
    rates = np.array([100.0] * 60 + [100.0, 300.0] * 30)
    judged = replay("last", Last(), Load(rates, 60.0, 60), 2, nothing)
    assert judged.error(1) == pytest.approx(1.0, abs=0.4)  # 200 of 200, but for what calibration corrects
    assert judged.path(1, MEDIAN)[0] != judged.path(1, MEDIAN)[0]  # of the first step nothing was said
    assert judged.error(500) is None
    assert judged.coverage(500) is None
