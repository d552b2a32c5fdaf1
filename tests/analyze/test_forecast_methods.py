"""What each forecast method is good for, on loads whose future is known."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rheostat.analyze.forecasts import find_forecaster
from rheostat.analyze.forecasts.autoregression import Autoregression
from rheostat.analyze.forecasts.best import Best
from rheostat.analyze.forecasts.forecast import Forecast
from rheostat.analyze.forecasts.forecaster import Forecaster, History, observe_all
from rheostat.analyze.forecasts.network import Network
from rheostat.analyze.forecasts.network_file import load_learned, save_learned
from rheostat.analyze.forecasts.season import Season
from rheostat.analyze.forecasts.trend import Trend
from rheostat.model.errors import FileError, UserError

DAY, HOUR = 86_400.0, 3_600.0


def minutes(rates: list[float]) -> History:
    return [(60.0 * (number + 1), rate) for number, rate in enumerate(rates)]


def path(forecaster: Forecaster, history: History, steps: int) -> tuple[float, ...]:
    forecast = forecaster.forecast(observe_all(forecaster, {}, history), history[-1][0], steps)
    assert forecast is not None
    return forecast.path()


def wave(period: int, count: int) -> list[float]:
    return [500 + 400 * math.sin(2 * math.pi * minute / period) for minute in range(count)]


def square(period: int, count: int) -> list[float]:
    return [900.0 if minute % period >= period / 2 else 100.0 for minute in range(count)]


def test_a_trend_goes_on_but_less_and_less() -> None:
    rises = np.diff(path(Trend(), minutes([10.0 * minute for minute in range(60)]), 10))
    assert rises[0] > 2
    assert (np.diff(rises) < 0).all() and rises[-1] > 0


def test_a_jump_is_drawn_on_by_a_line_and_hardly_by_a_damped_trend() -> None:
    jump = minutes([100.0] * 20 + [1_000.0] * 5)
    assert path(find_forecaster("line"), jump, 15)[-1] > 2_500
    assert path(Trend(), jump, 15)[-1] < 1_350


@pytest.mark.parametrize("shape", [wave, square])
@pytest.mark.parametrize("period", [10, 15])
def test_autoregression_learns_a_rhythm_from_the_load_itself(shape: object, period: int) -> None:
    assert callable(shape)
    rates = shape(period, 300)
    assert path(Autoregression(), minutes(rates[:280]), 15) == pytest.approx(rates[280:295], abs=25)


def test_autoregression_waits_until_it_has_three_times_its_order() -> None:
    assert (
        Autoregression().forecast(observe_all(Autoregression(), {}, minutes(wave(10, 59))), 3_540.0, 3)
        is None
    )
    assert path(Autoregression(), minutes(wave(10, 60)), 3)


def test_autoregression_never_runs_away() -> None:
    growing = [1.3**minute for minute in range(70)]
    assert max(path(Autoregression(), minutes(growing), 60)) <= 2 * growing[-1]


def hourly(day: int, hour: int) -> float:
    return (1_000.0 if day % 7 < 5 else 200.0) + 10 * hour


def weeks(days: int, step: float = 600.0) -> History:
    ends = [step * (number + 1) for number in range(round(days * DAY / step))]
    return [(end, hourly(int((end - 1) // DAY), int((end - 1) % DAY // HOUR))) for end in ends]


def test_a_season_expects_the_hour_of_the_weekday() -> None:
    season = Season(step_seconds=600.0, smoothing=0.0)
    memory = observe_all(season, {}, weeks(14))
    for day, hour in ((0, 8), (4, 20), (5, 8), (6, 20)):
        forecast = season.forecast(memory, (14 + day) * DAY + hour * HOUR, 6)
        assert forecast is not None
        assert forecast.path()[2] == pytest.approx(hourly(day, hour), rel=0.02)  # the middle of the hour


def test_a_season_takes_a_weekday_that_it_never_saw_for_one_like_the_others() -> None:
    season = Season(step_seconds=600.0, smoothing=0.0)
    memory = observe_all(season, {}, weeks(2))
    wednesday = season.forecast(memory, 2 * DAY + 8 * HOUR, 6)
    assert wednesday is not None
    assert wednesday.path()[2] == pytest.approx(hourly(2, 8), rel=0.02)
    assert season.forecast(memory, 5 * DAY + 8 * HOUR, 6) is None  # no Saturday, no Sunday: nothing is known


def test_a_season_follows_a_day_that_is_busier_than_usual() -> None:
    season = Season(step_seconds=600.0)
    memory = observe_all(season, {}, weeks(15))
    for end, rate in weeks(16)[15 * 144 : 15 * 144 + 60]:
        memory = season.observe(memory, end, 1.5 * rate)
    forecast = season.forecast(memory, 15 * DAY + 10 * HOUR, 6)
    assert forecast is not None
    assert forecast.path()[2] == pytest.approx(1.5 * hourly(1, 10), rel=0.1)


def test_a_season_of_a_load_that_is_played_faster_has_shorter_days() -> None:
    slow = Season(step_seconds=600.0)
    fast = slow.paced(10.0, DAY / 60)
    history = weeks(14)
    expected = path(slow, history, 6)
    assert path(fast, [(at / 60, rate) for at, rate in history], 6) == pytest.approx(expected)


@pytest.fixture(scope="module")
def trained() -> Network:
    return Network().trained(minutes(wave(30, 2_000)))


def test_the_network_has_the_papers_shape_and_learns_a_wave(trained: Network) -> None:
    assert trained.learned is not None
    assert trained.learned.network.hidden.shape == (13 + 1, 24)
    assert trained.learned.network.output.shape == (24 + 1, 5)
    rates = wave(30, 400)
    assert path(trained, minutes(rates[:380]), 15) == pytest.approx(rates[380:395], abs=80)


def test_the_same_training_gives_the_same_network(trained: Network) -> None:
    again = Network().trained(minutes(wave(30, 2_000)))
    assert path(again, minutes(wave(30, 100)), 5) == path(trained, minutes(wave(30, 100)), 5)


def test_the_network_expects_no_load_above_those_it_was_trained_on(trained: Network) -> None:
    assert max(path(trained, minutes([5_000.0] * 20), 10)) <= 900.0


def test_a_saved_network_gives_the_same_forecasts(trained: Network, tmp_path: Path) -> None:
    assert trained.learned is not None
    save_learned(tmp_path / "network.json", trained.learned)
    read = find_forecaster(f"network:{tmp_path}/network.json")
    assert not read.needs_training
    assert path(read, minutes(wave(30, 100)), 5) == path(trained, minutes(wave(30, 100)), 5)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "empty"),
        ("[1]", "expected a mapping"),
        ('{"rheostat_network": 2}', "rheostat_network"),
        ('{"rheostat_network": 1, "low": 0, "spread": 1, "day": 1, "step_seconds": 60, "hidden": [[1]],'
         ' "output": [[1]]}', "expected 14 rows of 24 weights"),
        ('{"rheostat_network": 1, "low": 0, "spread": 1, "day": 1, "step_seconds": 60, "hidden": [["x"]],'
         ' "output": []}', "hidden"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_network_is_refused(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "network.json").write_text(content)
    with pytest.raises(FileError, match=message):
        load_learned(tmp_path / "network.json", 13, 24, 5)


def test_a_network_needs_enough_to_be_trained_on() -> None:
    with pytest.raises(UserError, match="at least 45 steps"):
        Network().trained(minutes(wave(10, 44)))
    assert Network().forecast(observe_all(Network(), {}, minutes(wave(10, 44))), 2_640.0, 5) is None


def test_best_listens_to_the_method_that_was_right_lately() -> None:
    rhythm = square(10, 400)
    assert path(Best(), minutes(rhythm[:380]), 10) == pytest.approx(rhythm[380:390], abs=25)
    steps = [100.0 * (1 + minute // 60) for minute in range(400)]
    assert path(Best(), minutes(steps), 10) == pytest.approx([steps[-1]] * 10, rel=0.05)


def test_best_passes_over_a_method_that_knows_nothing_yet() -> None:
    assert path(Best(), minutes([500.0, 500.0]), 3) == pytest.approx([500.0] * 3)
    assert Best().forecast({}, 0.0, 3) is None


def test_a_forecast_is_read_between_its_steps_and_beyond_its_end() -> None:
    forecast = Forecast(0.0, 60.0, (0.5, 0.9), ((10.0, 20.0), (30.0, 40.0)))
    assert [forecast.at(time) for time in (0.0, 60.0, 90.0, 120.0, 999.0)] == [10.0, 10.0, 20.0, 30.0, 30.0]
    assert (forecast.at(90.0, 0.9), forecast.highest(0.9), forecast.highest(0.9, 1)) == (30.0, 40.0, 20.0)
    assert forecast.ends_at == 120.0
    assert replace(forecast, issued_at=60.0).at(90.0) == 10.0
