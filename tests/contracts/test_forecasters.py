"""Every forecaster passes the same suite; one that needs more than a name is tried with a text of its own."""

import json
import math

import pytest

from rheostat.analyze.forecasts import FORECASTERS, Forecast, Forecaster, History, find_forecaster
from rheostat.analyze.forecasts.calibrated import Calibrated
from rheostat.analyze.forecasts.forecaster import Memory, observe_all
from rheostat.model.errors import UserError

TEXTS = {"schedule": "step:low=100:high=900:duration=1000:start=300:end=700"}
SPECS = [f"{name}:{TEXTS[name]}" if name in TEXTS else name for name in FORECASTERS]
MINUTES = 400
HISTORY = [
    [60.0 * (minute + 1), 500.0 + 300 * math.sin(minute / 5) + 7 * (minute % 3)] for minute in range(MINUTES)
]
NOW = HISTORY[-1][0]

each = pytest.mark.parametrize("spec", SPECS)
MEASURING = [spec for spec in SPECS if not spec.startswith("schedule")]  # which looks at no measurement
TIMELESS = [spec for spec in MEASURING if spec not in ("season", "best", "network")]  # which know the hour
both = pytest.mark.parametrize("calibrated", [False, True])


def built(spec: str, calibrated: bool = False) -> Forecaster:
    made = find_forecaster(spec).trained(HISTORY)
    return Calibrated(made) if calibrated else made


def made(forecaster: Forecaster, memory: Memory, now: float = NOW, steps: int = 5) -> Forecast:
    forecast = forecaster.forecast(memory, now, steps)
    assert forecast is not None
    return forecast


def rates(forecast: Forecast) -> list[float]:
    return [rate for row in forecast.values for rate in row]


@both
@each
def test_a_short_history_gives_a_forecast_or_none_and_a_long_one_gives_a_forecast(
    spec: str, calibrated: bool
) -> None:
    forecaster = built(spec, calibrated)
    histories: list[History] = [[], HISTORY[:1], HISTORY[:2], HISTORY[:12]]
    for history in histories:
        forecast = forecaster.forecast(observe_all(forecaster, {}, history), 720.0, 5)
        assert forecast is None or all(map(math.isfinite, rates(forecast)))
    assert all(map(math.isfinite, rates(made(forecaster, observe_all(forecaster, {}, HISTORY)))))


@both
@each
def test_the_memory_is_plain_json_and_observing_changes_no_older_one(spec: str, calibrated: bool) -> None:
    forecaster = built(spec, calibrated)
    memory = observe_all(forecaster, {}, HISTORY[:200])
    before = json.dumps(memory)
    later = forecaster.observe(memory, HISTORY[200][0], 900.0)
    assert json.dumps(memory) == before
    stored = json.loads(json.dumps(later))
    at = HISTORY[200][0]
    assert forecaster.forecast(stored, at, 5) == forecaster.forecast(later, at, 5)


@both
@each
def test_the_same_memory_gives_the_same_forecast(spec: str, calibrated: bool) -> None:
    forecaster = built(spec, calibrated)
    memory = observe_all(forecaster, {}, HISTORY)
    assert made(forecaster, memory) == made(built(spec, calibrated), memory)


@both
@each
def test_a_forecast_begins_now_has_as_many_steps_as_asked_for_and_is_never_negative(
    spec: str, calibrated: bool
) -> None:
    forecaster = built(spec, calibrated)
    falling = observe_all(
        forecaster, {}, [[60.0 * minute, 4_000.0 - 10 * minute] for minute in range(1, 400)]
    )
    for steps in (1, 7, 40):
        forecast = made(forecaster, falling, steps=steps)
        assert (forecast.issued_at, forecast.step_seconds, forecast.steps) == (NOW, 60.0, steps)
        assert min(rates(forecast)) >= 0.0


@both
@pytest.mark.parametrize("spec", MEASURING)
def test_minutes_that_were_not_measured_are_not_taken_for_zero(spec: str, calibrated: bool) -> None:
    forecaster = built(spec, calibrated)
    steady = [[60.0 * minute, 500.0] for minute in range(1, 400) if minute % 50 not in (7, 8, 9)]
    forecast = made(forecaster, observe_all(forecaster, {}, steady), steady[-1][0])
    lowest = 350.0 if spec == "network" else 499.0  # which was trained on another load
    assert min(rates(forecast)) >= lowest


@pytest.mark.parametrize("spec", TIMELESS)
def test_longer_steps_are_only_longer_steps(spec: str) -> None:
    short, long = find_forecaster(spec), find_forecaster(spec).paced(300.0)
    of_minutes = observe_all(short, {}, HISTORY)
    of_five = observe_all(long, {}, [[5 * at, rate] for at, rate in HISTORY])
    assert rates(made(long, of_five, 5 * NOW)) == pytest.approx(rates(made(short, of_minutes)))


def test_an_unknown_forecast_or_one_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(UserError, match="unknown forecast 'lime'; did you mean 'line'"):
        find_forecaster("lime")
    for wrong in ("line:1", "line:many"):
        with pytest.raises(UserError, match="makes no sense"):
            find_forecaster(wrong)
    for wrong, message in (
        ("last:3", "has no parameters"),
        ("trend:slpoe=1", "did you mean 'slope'"),
        ("trend:level=2", "level must be from 0.01 to 1"),
        ("season:weeks=many", "weeks must be a number"),
        ("ar:order=0", "order must be from 1"),
        ("best:fading=2", "fading must be from 0 to 1"),
        ("network:nowhere.json", "nowhere.json: cannot be read"),
    ):
        with pytest.raises(UserError, match=message):
            find_forecaster(wrong)
