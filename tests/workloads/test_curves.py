import time

import numpy as np
import pytest

from rheostat.workloads import Curve, Noise, curve_names, parse_curve, sample
from rheostat.workloads.catalogue import FAMILIES

SHAPES = [name for name in curve_names() if name != "trace"]


@pytest.mark.parametrize("name", SHAPES)
def test_every_curve_works_without_parameters_and_is_never_negative(name: str) -> None:
    rates = sample(parse_curve(name))
    assert np.isfinite(rates).all()
    assert (rates >= 0).all()
    assert rates.max() > 0


@pytest.mark.parametrize("name", SHAPES)
def test_every_curve_keeps_its_end_values_outside_its_duration(name: str) -> None:
    curve = parse_curve(name)
    assert curve.at(-100.0) == curve.at(0.0)
    assert curve.at(curve.duration_seconds + 1e6) == curve.at(curve.duration_seconds)


@pytest.mark.parametrize("name", [name for name in SHAPES if name not in {"constant", "exponential"}])
def test_low_and_high_are_reached_and_not_passed(name: str) -> None:
    rates = sample(parse_curve(f"{name}:low=50:high=800"), step_seconds=0.5)
    assert rates.min() == pytest.approx(50, abs=1)
    assert rates.max() == pytest.approx(800, abs=1)


def test_a_step_jumps_up_once_and_back_once() -> None:
    curve = parse_curve("step:low=10:high=20:start=1m:end=2m:duration=3m")
    assert [curve.at(t) for t in (0, 59, 60, 119, 120, 180)] == [10, 10, 20, 20, 10, 10]


def test_a_stair_climbs_and_descends_over_equal_levels() -> None:
    levels = sample(parse_curve("stair:low=0:high=30:steps=3:duration=70"), step_seconds=10)
    assert levels.tolist() == [0, 10, 20, 30, 20, 10, 0]


def test_a_square_wave_starts_low_and_changes_every_half_period() -> None:
    levels = sample(parse_curve("square:low=1:high=9:period=20:duration=60"), step_seconds=10)
    assert levels.tolist() == [1, 9, 1, 9, 1, 9]


def test_p1_grows_linearly_from_5_to_550_and_back() -> None:
    curve = parse_curve("p1")
    middle = curve.duration_seconds / 2
    assert [curve.at(t) for t in (0, middle / 2, middle, 2 * middle)] == [5, 277.5, 550, 5]


def test_the_ddos_ramp_holds_every_2000_for_two_minutes_up_to_16000_and_down() -> None:
    rates = sample(parse_curve("ddos-ramp"), step_seconds=1).reshape(-1, 120)
    up = list(range(0, 16_001, 2000))
    assert (rates == rates[:, :1]).all()
    assert rates[:, 0].tolist() == up + up[-2::-1]


def test_the_exponential_load_is_low_then_doubles_steadily_then_falls_by_plateaus() -> None:
    curve = parse_curve("exponential:irregular=0:duration=1000")
    assert curve.at(100) == 100
    assert curve.at(500) == 1000
    rise = curve.rate(np.array([250.0, 300.0, 350.0, 400.0]))
    growth = np.diff(rise)[1:] / np.diff(rise)[:-1]
    assert growth == pytest.approx(np.full(2, np.e))
    plateaus = np.unique(curve.rate(np.arange(600.0, 1000.0)))
    assert plateaus == pytest.approx([100, 280, 460, 640, 820])


def test_the_exponential_load_is_irregular_unless_asked_otherwise_and_follows_its_seed() -> None:
    same, again, other = (sample(parse_curve(f"exponential:seed={seed}")) for seed in (1, 1, 2))
    assert (same == again).all()
    assert (same != other).any()
    assert np.unique(same[:300]).size > 100


def test_a_working_day_is_tenfold_with_a_lunch_dip_and_an_evening_fall() -> None:
    hours = np.array([3, 10, 12.5, 15, 21])
    night, morning, lunch, afternoon, evening = parse_curve("day").rate(3600 * hours)
    assert morning == 10 * night
    assert lunch < 0.8 * min(morning, afternoon)
    assert night < evening < lunch


def test_the_week_has_five_equal_days_and_a_quiet_weekend() -> None:
    days = sample(parse_curve("week"), step_seconds=60).reshape(7, -1)
    until_ten = slice(0, 22 * 60)  # from then on Friday already bends towards Saturday's first hour
    for working in days[1:5]:
        assert working[until_ten] == pytest.approx(days[1][until_ten])
    assert (days.max(axis=1)[5:] < 0.5 * days.max(axis=1)[0]).all()


def test_the_day_repeats_when_it_lasts_longer_than_a_day() -> None:
    curve = parse_curve("day:duration=3d")
    assert curve.at(30_000) == pytest.approx(curve.at(30_000 + 2 * 86_400))


def test_scale_multiplies_the_rate_and_compress_shortens_the_time() -> None:
    plain, faster = parse_curve("day"), parse_curve("day:compress=60:scale=3")
    assert faster.duration_seconds == 1440
    assert faster.at(600) == pytest.approx(3 * plain.at(36_000))


def test_the_peak_is_taken_over_the_whole_duration() -> None:
    assert parse_curve("week").peak() == pytest.approx(1000)
    assert parse_curve("week:duration=30d:scale=2").peak() == pytest.approx(2000)


def test_poisson_noise_scatters_like_counts_around_the_curve() -> None:
    rates = sample(parse_curve("constant:rate=400:duration=20000:noise=poisson"))
    assert rates.mean() == pytest.approx(400, rel=0.01)
    assert rates.var() == pytest.approx(400, rel=0.1)
    assert (rates == rates.round()).all()


def test_longer_steps_average_poisson_noise_out() -> None:
    rates = sample(parse_curve("constant:rate=400:duration=40000:noise=poisson"), step_seconds=10)
    assert rates.var() == pytest.approx(40, rel=0.1)


def test_negative_binomial_noise_has_the_variance_its_dispersion_says() -> None:
    rates = sample(parse_curve("constant:rate=400:duration=20000:noise=negbin:dispersion=0.1"))
    assert rates.mean() == pytest.approx(400, rel=0.02)
    assert rates.var() == pytest.approx(400 + 0.1 * 400**2, rel=0.1)


def test_noise_is_the_same_for_the_same_seeds_and_differs_for_others() -> None:
    curve, other = parse_curve("sine:noise=poisson"), parse_curve("sine:noise=poisson:seed=1")
    assert (sample(curve, seed=3) == sample(curve, seed=3)).all()
    assert (sample(curve, seed=3) != sample(curve, seed=4)).any()
    assert (sample(curve, seed=3) != sample(other, seed=3)).any()
    assert curve.noise == Noise("poisson")


def test_the_expected_rate_carries_no_noise() -> None:
    assert parse_curve("sine:noise=negbin").at(300) == parse_curve("sine").at(300)


def test_a_noisy_day_of_seconds_is_sampled_at_once() -> None:
    curve = parse_curve("day:noise=negbin")
    fastest = min(_seconds_to_sample(curve) for _ in range(3))
    assert sample(curve).size == 86_400
    assert fastest < 0.1


def _seconds_to_sample(curve: Curve) -> float:
    started = time.process_time()
    sample(curve)
    return time.process_time() - started


def test_every_default_lies_within_its_own_limits() -> None:
    for family in FAMILIES.values():
        for key in (*family.keys, *family.common()):
            if isinstance(key.default, float):
                assert key.low <= key.default <= key.high
