import numpy as np
import pytest

from rheostat.workloads import parse_curve, sample
from rheostat.workloads.bursty import _cascade, _immigrants, election_night

SEEDS = range(8)


def test_a_day_lasts_24_minutes_because_the_paper_replays_it_sixty_times_faster() -> None:
    assert parse_curve("bursty").duration_seconds == 24 * 60
    assert parse_curve("bursty:compress=1").duration_seconds == 86_400


def test_the_same_seed_gives_the_same_bursts_and_another_seed_others() -> None:
    assert (sample(parse_curve("bursty:seed=5")) == sample(parse_curve("bursty:seed=5"))).all()
    assert (sample(parse_curve("bursty:seed=5")) != sample(parse_curve("bursty:seed=6"))).any()


@pytest.mark.parametrize("seed", SEEDS)
def test_the_flood_of_the_election_night_is_the_peak(seed: int) -> None:
    rates = sample(parse_curve(f"bursty:compress=1:seed={seed}"), step_seconds=60)
    assert 0 <= rates.argmax() * 60 - election_night(86_400) < 2 * 3600


@pytest.mark.parametrize("seed", SEEDS)
def test_bursts_rise_faster_than_they_decay(seed: int) -> None:
    change = np.diff(sample(parse_curve(f"bursty:compress=1:seed={seed}"), step_seconds=60))
    assert change.max() > 2 * -change.min()


def test_burst_heights_have_a_heavier_tail_than_an_exponential() -> None:
    calm = sample(parse_curve("bursty:compress=1:duration=100d"), step_seconds=60)[: 98 * 1440]
    jumps = np.diff(calm)
    jumps = jumps[jumps > 0]
    excess = jumps[jumps > np.quantile(jumps, 0.9)] - np.quantile(jumps, 0.9)
    assert excess.std() > 1.3 * excess.mean()  # an exponential tail has equal mean and deviation


def test_nights_are_quieter_than_evenings() -> None:
    days = sample(parse_curve("bursty:compress=1:duration=30d"), step_seconds=3600).reshape(30, 24)[:28]
    assert days[:, 4].mean() < 0.6 * days[:, 20].mean()


def test_bursts_come_in_clusters_more_than_chance_would_have_it() -> None:
    draw = np.random.default_rng(0)
    moments = _cascade(draw, _immigrants(draw, 200 * 86_400.0, 24))
    hourly = np.histogram(moments, bins=np.arange(0, 200 * 86_400, 3600))[0]
    same_hour = hourly[: 199 * 24].reshape(199, 24)
    assert same_hour.var(axis=0).mean() > 1.5 * same_hour.mean(axis=0).mean()


def test_without_bursts_only_the_rhythm_and_the_flood_remain() -> None:
    first, second = (sample(parse_curve(f"bursty:bursts=0:seed={seed}")) for seed in (1, 2))
    assert (first == second).all()
