from pathlib import Path

import pytest

from rheostat.analyze.forecasts.schedule import DAY, WEEK, Schedule

TRACES = Path(__file__).parents[2] / "examples" / "traces"
MORNING = 8 * 3_600.0


def scheduled(spec: str) -> Schedule:
    return Schedule.parse(spec)


@pytest.mark.parametrize(
    ("spec", "period"),
    [
        ("day", DAY),
        ("week", WEEK),
        (f"trace:{TRACES}/office-day.csv", DAY),
        ("day:duration=23h", DAY),  # as a trace of hourly rows, the last at 23:00
        ("day:duration=22h", None),
        ("day:compress=24", None),
        ("ddos-ramp", None),
    ],
)
def test_only_a_day_or_a_week_follows_the_clock(spec: str, period: float | None) -> None:
    assert scheduled(spec).clock_period == period


def test_a_run_that_begins_in_the_morning_is_in_the_schedules_morning() -> None:
    day = scheduled("day")
    for age in (0.0, 3_600.0, DAY + 60):
        [first, last] = day.expected(local_start=MORNING).path(age, age + 1)
        assert first == pytest.approx(day.curve.at((MORNING + age) % DAY))
        assert last == pytest.approx(day.curve.at((MORNING + age + 1) % DAY))


def test_a_day_that_was_recorded_from_six_on_is_at_its_nine_at_nine(tmp_path: Path) -> None:
    hours = [f"2026-11-{18 + hour // 24:02}T{hour % 24:02}:00:00,{hour % 24}" for hour in range(6, 30)]
    (tmp_path / "day.csv").write_text("\n".join(["time,rate", *hours]))
    nine = 9 * 3_600.0
    [now, _] = scheduled(f"trace:{tmp_path}/day.csv").expected(local_start=nine).path(0, 1)
    assert now == 9
    [now, _] = scheduled("day:start=8h").expected(local_start=nine).path(0, 1)
    assert now == pytest.approx(scheduled("day").curve.at(nine))


def test_a_week_that_was_recorded_from_wednesday_on_begins_on_wednesday(tmp_path: Path) -> None:
    days = [f"2026-11-{18 + day}T00:00:00+00:00,{day}" for day in range(8)]  # the 18th is a Wednesday
    (tmp_path / "week.csv").write_text("\n".join(["time,rate", *days]))
    curve = scheduled(f"trace:{tmp_path}/week.csv").curve
    assert curve.begins_at == pytest.approx(2 * DAY, abs=14 * 3_600)  # by the zone of this machine


def test_a_week_begins_on_monday() -> None:
    saturday = 5 * DAY + 10 * 3_600
    [now, _] = scheduled("week").expected(local_start=saturday).path(0, 1)
    assert now < 0.5 * scheduled("week").curve.at(10 * 3_600)


def test_any_other_schedule_begins_with_the_run_and_repeats() -> None:
    ramp = scheduled("ddos-ramp")
    whole = 17 * 120
    for age in (130.0, whole + 130.0):
        assert ramp.expected(local_start=MORNING).path(age, age + 1).tolist() == [2_000, 2_000]


def test_a_short_burst_within_a_long_look_ahead_is_seen() -> None:
    burst = scheduled("step:low=10:high=90:duration=600:start=100:end=110")
    assert burst.expected(local_start=0.0).path(0, 120).max() == 90
