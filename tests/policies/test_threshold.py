"""One instance more above a utilisation, one less below another."""

import pytest

from rheostat.policies.example import situation
from rheostat.policies.threshold import Threshold

from .situations import with_limits


def test_one_step_per_operator_and_window_whatever_the_distance() -> None:
    # lines 0.8 (not above), split 4.0, count 3.2 / 6 = 0.53.
    proposal, _ = Threshold().decide(situation(load=8_000, parallelism=(1, 1, 6), nodes=4), {})
    assert proposal.target.parallelism == {"lines": 1, "split": 2, "count": 6}


def test_exactly_at_a_threshold_nothing_changes() -> None:
    seen = situation(load=1_200, parallelism=(1, 1, 1))  # split is 0.6 busy, count 0.48, lines 0.12
    assert Threshold(high=0.6).decide(seen, {})[0].target == seen.configuration
    twice = situation(load=1_200, parallelism=(1, 2, 1))  # split 0.3
    assert Threshold(low=0.3).decide(twice, {})[0].target == twice.configuration
    assert Threshold(low=0.31).decide(twice, {})[0].target.parallelism["split"] == 1


def test_every_cause_holds_and_names_its_operator() -> None:
    proposal, _ = Threshold().decide(situation(load=1_900, parallelism=(1, 1, 4), nodes=3), {})
    assert [(c.subject, c.relation) for c in proposal.causes] == [("split", ">"), ("count", "<")]
    assert all(cause.holds() for cause in proposal.causes)


def test_an_operator_at_its_own_limit_is_left_out_of_the_reason() -> None:
    floored = with_limits(situation(load=100, parallelism=(1, 3, 1), nodes=3), "split", 3, 64)
    proposal, _ = Threshold().decide(floored, {})
    assert proposal.target == floored.configuration
    assert proposal.causes == ()
    capped = with_limits(situation(load=1_900), "split", 1, 1)
    assert Threshold().decide(capped, {})[0].target == capped.configuration


def test_low_must_be_below_high() -> None:
    with pytest.raises(ValueError, match="below high"):
        Threshold(high=0.3, low=0.3)
