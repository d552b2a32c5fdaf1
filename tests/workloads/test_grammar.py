import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rheostat.model.errors import UserError
from rheostat.workloads import Curve, curve_names, parse_curve, sample
from rheostat.workloads.catalogue import FAMILIES


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("600", 600), ("90s", 90), ("10m", 600), ("1.5h", 5400), ("2d", 172_800), ("1e3", 1000)],
)
def test_durations_are_read_in_every_unit(written: str, seconds: float) -> None:
    assert parse_curve(f"constant:duration={written}").duration_seconds == seconds


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("", "unknown load curve ''"),
        ("snie", "did you mean 'sine'?"),
        ("sine:hihg=3", "did you mean 'high'?"),
        ("sine:high", "expected key=value"),
        ("sine:", "expected key=value"),
        ("sine:high=3:high=4", "high is given twice"),
        ("sine:high=many", "high must be a number"),
        ("sine:high=", "high must be a number"),
        ("sine:high=1m", "high must be a number"),
        ("sine:high=nan", "high must be a number"),
        ("sine:high=inf", "high must be a number"),
        ("sine:high=1e400", "high must be from 0"),
        ("sine:low=-1", "low must be from 0"),
        ("sine:low=2000", "low=2000 is above high=1000"),
        ("sine:period=0", "period must be from 1"),
        ("sine:period=ten", "such as 600, 90s, 10m, 2h or 1d"),
        ("sine:duration=-5", "duration must be from 1"),
        ("sine:duration=367d", "duration must be from 1"),
        ("sine:duration=366d:compress=0.5", "allowed are 1 s to 366 days"),
        ("sine:duration=10:compress=100", "allowed are 1 s to 366 days"),
        ("sine:compress=0", "compress must be from 0.001"),
        ("sine:scale=-2", "scale must be from 0"),
        ("sine:noise=possion", "did you mean 'poisson'?"),
        ("sine:noise=poisson:dispersion=1", "dispersion needs noise=negbin"),
        ("sine:noise=negbin:dispersion=0", "dispersion must be from 1e-06"),
        ("sine:seed=1.5", "seed must be a whole number"),
        ("stair:steps=0", "steps must be from 1"),
        ("step:start=20m:end=10m", "must rise in this order"),
        ("step:start=2h", "must rise in this order"),
        ("trace", "which file?"),
        ("trace:", "not a usable file name"),
        ("trace:nowhere.csv", "nowhere.csv: cannot be read: No such file"),
        ("trace:a:b.csv", "expected key=value"),
        ("sine:" + "x" * 5000, "characters"),
    ],
)
def test_a_mistake_is_told_in_one_line(spec: str, said: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_curve(spec)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 250


def test_a_lead_holds_the_first_load_and_is_not_compressed() -> None:
    curve = parse_curve("ramp:low=0:high=10:duration=40:compress=10:scale=2:lead=3s")
    assert curve.duration_seconds == 7
    assert [curve.at(second) for second in (0, 3, 4, 5, 7)] == [0, 0, 10, 20, 0]


def _only_user_errors(spec: str) -> Curve | None:
    try:
        return parse_curve(spec)
    except UserError as error:
        assert len(str(error).splitlines()) == 1
        return None


@settings(deadline=None)
@given(st.text(max_size=60))
def test_no_text_whatever_raises_anything_but_a_user_error(text: str) -> None:
    _only_user_errors(text)


OWN_KEYS = {key.name for family in FAMILIES.values() for key in family.keys}
KEYS = st.sampled_from(sorted(OWN_KEYS | {"scale", "compress", "lead", "noise", "dispersion", "seed"}))
WORDS = "0 1 90s 10m 2h 1e9 -1 nan 1e-9 poisson negbin ٣ 1_0"
VALUES = st.sampled_from(WORDS.split()) | st.floats(0, 1e5).map(repr) | st.text(max_size=8)


@settings(deadline=None)
@given(st.sampled_from(curve_names()), st.lists(st.tuples(KEYS, VALUES), max_size=4))
def test_whatever_is_accepted_gives_finite_rates_that_are_not_negative(
    name: str, pairs: list[tuple[str, str]]
) -> None:
    curve = _only_user_errors(":".join([name, *(f"{key}={value}" for key, value in pairs)]))
    if curve is not None:
        rates = sample(curve, step_seconds=min(86_400.0, curve.duration_seconds / 50))
        assert rates.size >= 50
        assert np.isfinite(rates).all()
        assert (rates >= 0).all()


@settings(deadline=None)
@given(st.floats(0, 1e6), st.floats(0, 1e6), st.floats(1, 1e6))
def test_a_sine_stays_between_its_bounds(one: float, other: float, period: float) -> None:
    low, high = sorted((one, other))
    rates = sample(parse_curve(f"sine:low={low!r}:high={high!r}:period={period!r}"))
    assert rates.min() >= low * (1 - 1e-9)
    assert rates.max() <= high * (1 + 1e-9)


@pytest.mark.parametrize("step", [0.0, -1.0, float("nan"), float("inf"), 1e-9])
def test_a_senseless_step_is_refused(step: float) -> None:
    with pytest.raises(UserError, match="step"):
        sample(parse_curve("sine"), step)


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(UserError, match="seed -1 is negative"):
        sample(parse_curve("sine"), seed=-1)
