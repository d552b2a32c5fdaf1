"""What a proactive policy expects."""

import json
from pathlib import Path

import pytest

from rheostat.analyze.forecasts.forecaster import Memory
from rheostat.model.errors import UserError
from rheostat.policies.foresight import Foresight


def after(
    foresight: Foresight, rates: list[float], seconds: float = 60.0, memory: Memory | None = None
) -> Memory:
    seen: Memory = memory or {}
    for turn, rate in enumerate(rates):
        seen = foresight.observe(seen, seconds * turn, seconds * (turn + 1), rate, 0.0)
    return seen


def path(foresight: Foresight, memory: Memory, now: float) -> tuple[float, ...]:
    forecast = foresight.expected(memory, now, 0.0)
    assert forecast is not None
    return forecast.path()


def test_short_windows_are_put_together_to_minutes() -> None:
    trend = Foresight("trend")
    by_ten = after(trend, [100.0] * 5 + [700.0] + [1_000.0] * 6, seconds=10.0)
    assert path(trend, by_ten, 120.0) == path(trend, after(trend, [200.0, 1_000.0]), 120.0)


def test_windows_that_do_not_touch_are_not_put_together() -> None:
    last = Foresight("last")
    memory = last.observe({}, 0.0, 40.0, 100.0, 0.0)
    memory = last.observe(memory, 90.0, 130.0, 900.0, 0.0)  # a change took fifty seconds
    assert last.expected(memory, 130.0, 0.0) is None
    assert path(last, last.observe(memory, 130.0, 150.0, 900.0, 0.0), 150.0) == (900.0,) * 5


def test_a_history_is_known_from_the_first_minute_on() -> None:
    knowing = Foresight("ar", "square:low=100:high=900:period=10m:duration=4h")
    # 240 minutes end with a high half; then the low one begins, and five minutes later the next high one.
    memory = after(knowing, [100.0] * 4)
    assert path(knowing, memory, 240.0) == pytest.approx((100.0, 900.0, 900.0, 900.0, 900.0), abs=40)
    assert Foresight("ar").expected(after(Foresight("ar"), [100.0] * 4), 240.0, 0.0) is None


def test_a_history_of_a_day_follows_the_clock(tmp_path: Path) -> None:
    lines = [f"2026-03-02T{hour:02d}:00:00,{100 + 10 * hour}" for hour in range(24)]  # a Monday
    (tmp_path / "day.csv").write_text("\n".join(["time,rate", *lines]))
    season = Foresight("season", f"trace:{tmp_path}/day.csv")
    nine = 86_400.0 + 9 * 3_600.0  # a run that began on Tuesday at nine
    memory = season.observe({}, 0.0, 60.0, 190.0, nine)
    forecast = season.expected(memory, 60.0, nine)
    assert forecast is not None
    assert forecast.path()[0] == pytest.approx(190.0, abs=8)


def test_a_load_that_leaves_the_band_drops_the_forecast_until_it_is_back() -> None:
    foresight = Foresight("schedule:constant:rate=100:duration=1h")
    memory = after(foresight, [100.0 + minute % 3 for minute in range(60)])
    assert foresight.alert(memory) is None
    for minute in range(60, 66):
        memory = foresight.observe(memory, 60.0 * minute, 60.0 * (minute + 1), 900.0, 0.0)
    alert = foresight.alert(memory)
    assert alert is not None and "were above the forecast" in alert
    assert foresight.expected(memory, 66 * 60.0, 0.0) is None
    for minute in range(66, 90):
        memory = foresight.observe(memory, 60.0 * minute, 60.0 * (minute + 1), 101.0, 0.0)
    assert foresight.alert(memory) is None


def test_what_it_remembers_is_small_enough_to_be_journalled_in_every_turn() -> None:
    foresight = Foresight("best", minutes=2.0)
    memory = after(foresight, [500.0 + minute % 37 for minute in range(1_000)])
    assert len(json.dumps(memory)) < 32_768


@pytest.mark.parametrize(
    ("spec", "history", "message"),
    [
        ("bset", "", "did you mean 'best'"),
        ("network", "", "must learn first"),
        ("network", "constant:duration=10m", "at least 45 steps"),
        ("best", "nowhere", "unknown load curve"),
    ],
)
def test_a_mistake_is_found_at_once(spec: str, history: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        Foresight(spec, history).check()
