"""The curves that compete for a profile: what each can describe, and how its file is read."""

from typing import Any

import numpy as np
import pytest

from rheostat.analyze.profiles.contest import CURVES, LEAST, compete, mean_error
from rheostat.analyze.profiles.samples import Samples

NOISE = 0.01


def drawn(kind: str, count: int = 200) -> Samples:
    """Points around a function that is known, at loads that vary tenfold."""
    random = np.random.default_rng(1)
    x = random.uniform(10.0, 100.0, count)
    y = {
        "straight": 0.02 + 0.004 * x,
        "saturating": np.tanh(x / 40.0),
        "stepped": np.where(x < 55.0, 0.2, 0.4),
    }[kind]
    return Samples(x, y * random.normal(1.0, NOISE, count))


@pytest.mark.parametrize(
    ("kind", "winners"),
    [("straight", {"line"}), ("saturating", {"network", "isotonic"}), ("stepped", {"network", "isotonic"})],
)
def test_the_curve_wins_that_can_describe_the_points(kind: str, winners: set[str]) -> None:
    contest = compete(drawn(kind))
    assert contest is not None
    assert contest.curve.name in winners
    assert contest.errors[contest.curve.name] == min(contest.errors.values())
    assert contest.errors[contest.curve.name] < 3 * NOISE


def test_the_papers_network_describes_a_curve_that_bends_where_a_line_cannot() -> None:
    contest = compete(drawn("saturating"))
    assert contest is not None
    assert contest.errors["network"] < 2 * NOISE < contest.errors["line"]


def test_the_error_of_a_curve_is_that_on_points_that_it_was_not_fitted_to() -> None:
    random = np.random.default_rng(2)
    x = np.linspace(1.0, 2.0, 40)
    contest = compete(Samples(x, random.uniform(1.0, 3.0, 40)))  # nothing to learn
    assert contest is not None
    fitted = CURVES["isotonic"].fit(Samples(x, random.uniform(1.0, 3.0, 40)))
    assert mean_error(fitted, Samples(x, np.full(40, 2.0))) > 0
    assert min(contest.errors.values()) > 0.2


def test_too_few_points_teach_nothing() -> None:
    assert compete(drawn("straight", LEAST - 1)) is None
    assert compete(drawn("straight", LEAST)) is not None


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize("kind", ["straight", "saturating", "stepped"])
def test_a_curve_read_from_its_state_is_the_same(name: str, kind: str) -> None:
    curve = CURVES[name].fit(drawn(kind))
    x = np.linspace(0.0, 200.0, 50)
    assert CURVES[name].restored(curve.state).at(x) == pytest.approx(curve.at(x))


@pytest.mark.parametrize("name", CURVES)
def test_beyond_the_highest_load_cost_goes_on_rising(name: str) -> None:
    curve = CURVES[name].fit(drawn("straight"))
    at_most, beyond = curve.at(np.array([100.0, 200.0]))
    assert beyond - at_most == pytest.approx(0.4, rel=0.1)


@pytest.mark.parametrize("name", CURVES)
def test_equal_points_give_a_flat_curve(name: str) -> None:
    curve = CURVES[name].fit(Samples(np.full(30, 5.0), np.full(30, 0.5)))
    assert curve.at(np.array([5.0])) == pytest.approx([0.5])


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("line", {"rest": 1.0}),
        ("line", {"rest": "1", "slope": 1.0}),
        ("line", {"rest": True, "slope": 1.0}),
        ("isotonic", {"x": [], "y": [], "slope": 0.0}),
        ("isotonic", {"x": [2.0, 1.0], "y": [1.0, 2.0], "slope": 0.0}),
        ("network", {"weights": [1.0], "low": [0.0, 0.0], "high": [1.0, 1.0], "slope": 0.0}),
    ],
)
def test_a_state_that_makes_no_sense_is_refused(name: str, state: dict[str, Any]) -> None:
    with pytest.raises((ValueError, LookupError, TypeError)):
        CURVES[name].restored(state)
