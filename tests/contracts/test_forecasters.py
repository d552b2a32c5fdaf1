"""Every forecaster passes the same suite; one that needs more than a name is tried with a text of its own."""

import json
import math

import numpy as np
import pytest

from rheostat.analyze.forecasts import FORECASTERS, Forecast, History, find_forecaster
from rheostat.model.errors import UserError

TEXTS = {"schedule": "step:low=100:high=900:duration=1000:start=300:end=700"}
SPECS = [f"{name}:{TEXTS[name]}" if name in TEXTS else name for name in FORECASTERS]
HISTORY = [[60.0 * minute, 100.0 + 10 * minute + 7 * (minute % 3)] for minute in range(12)]
HISTORIES: list[History] = [[], HISTORY[:1], HISTORY[:2], HISTORY]

each = pytest.mark.parametrize("spec", SPECS)


def forecast(spec: str, history: History = HISTORY) -> Forecast:
    made = find_forecaster(spec).forecast(history)
    assert made is not None
    return made


@each
def test_a_short_history_gives_a_forecast_or_none_and_a_long_one_gives_a_forecast(spec: str) -> None:
    for history in HISTORIES[:-1]:
        made = find_forecaster(spec).forecast(history)
        assert made is None or math.isfinite(made.at(0.0))
    assert math.isfinite(forecast(spec).at(1_000.0))


@each
def test_the_same_history_gives_the_same_forecast_and_is_not_changed(spec: str) -> None:
    history = json.loads(json.dumps(HISTORY))
    forecaster = find_forecaster(spec)
    first, second = forecaster.forecast(history), forecaster.forecast(history)
    assert first is not None and second is not None
    assert first.path(660.0, 960.0).tolist() == second.path(660.0, 960.0).tolist()
    assert history == HISTORY


@each
def test_a_path_goes_from_one_moment_to_the_other_through_what_is_expected_there(spec: str) -> None:
    expected = forecast(spec)
    path = expected.path(690.0, 720.0)
    assert len(path) == 31
    assert path.tolist() == pytest.approx([expected.at(time) for time in np.linspace(690.0, 720.0, 31)])
    assert expected.path(690.0, 690.0).tolist() == pytest.approx([expected.at(690.0)] * 2)


@each
def test_the_change_is_the_difference_of_what_is_expected(spec: str) -> None:
    expected = forecast(spec)
    assert expected.change(600.0, 800.0) == pytest.approx(expected.at(800.0) - expected.at(600.0))
    assert expected.change(600.0, 600.0) == 0.0


def test_an_unknown_forecast_or_one_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(UserError, match="unknown forecast 'lime'; did you mean 'line'"):
        find_forecaster("lime")
    for wrong in ("line:1", "line:many"):
        with pytest.raises(UserError, match="makes no sense"):
            find_forecaster(wrong)
