"""DS2 as Flink's autoscaler applies it: backlog and restart over the catch-up time, rate over target."""

import pytest

from rheostat.model.decision import Proposal
from rheostat.policies.base import Situation
from rheostat.policies.ds2 import Ds2
from rheostat.policies.example import situation

from .situations import with_application, with_limits, with_operator


def decided(seen: Situation, policy: Ds2 | None = None) -> Proposal:
    proposal, memory = (policy or Ds2()).decide(seen, {})
    assert memory == {}
    assert all(cause.holds() for cause in proposal.causes)
    return proposal


def test_parallelism_follows_from_target_utilisation_and_the_restart_term() -> None:
    # 3000 / 0.7 + 3000 x 300 / 1800 = 4785.7 rows/s: lines 0.48, split 2.39, count 1.91 instances.
    proposal = decided(situation(load=3_000, parallelism=(1, 2, 1)))
    assert proposal.target.parallelism == {"lines": 1, "split": 3, "count": 2}
    assert proposal.reason.startswith("sustain 4,786 rows/s for a load of 3,000")
    assert [(c.subject, c.relation, c.threshold) for c in proposal.causes] == [("count", ">", 1.0)]


def test_without_a_restart_term_less_is_enough() -> None:
    # 2800 / 0.7 = 4000 rows/s: split 2.0, count 1.6; a restart would make it 4467 and split 2.23.
    proposal = decided(situation(load=2_800, parallelism=(1, 2, 1)), Ds2(restart_time=0))
    assert proposal.target.parallelism == {"lines": 1, "split": 2, "count": 2}


def test_the_backlog_is_caught_up_within_the_catch_up_duration() -> None:
    # 1000 / 0.7 + 90,000 / 60 = 2928.6 rows/s: split 1.46, count 1.17. Split would be 1.25 busy.
    policy = Ds2(catch_up_duration=60, restart_time=0)
    proposal = decided(situation(load=1_000, waiting=90_000), policy)
    assert proposal.target.parallelism == {"lines": 1, "split": 2, "count": 2}
    assert [(c.subject, round(c.value, 6)) for c in proposal.causes] == [("split", 1.25)]


def test_a_backlog_that_can_be_caught_up_in_time_changes_nothing() -> None:
    # Split is 0.5 busy; 60,000 rows over 30 minutes are 33 rows/s more.
    assert decided(situation(load=1_000, waiting=60_000)).target.parallelism["split"] == 1


def test_inside_the_band_nothing_changes_although_another_parallelism_would_be_closer_to_the_target() -> None:
    # split 1.6 / 2 = 0.8 and count 1.28 / 2 = 0.64 are inside [0.4, 1.0]; 0.7 would take 3 and 2.
    seen = situation(load=3_200, parallelism=(1, 2, 2), nodes=3)
    assert decided(seen).target == seen.configuration


def test_one_operator_outside_the_band_moves_all_to_their_target() -> None:
    # count 1.28 / 1 is outside; split (0.8) moves along: 1.6 / 0.7 + 1.6 / 6 = 2.55.
    proposal = decided(situation(load=3_200, parallelism=(1, 2, 1)))
    assert proposal.target.parallelism == {"lines": 1, "split": 3, "count": 3}


def test_below_the_band_it_shrinks_in_one_step() -> None:
    # 1000 / 0.7 + 1000 / 6 = 1595.2 rows/s: split 0.8.
    proposal = decided(situation(load=1_000, parallelism=(1, 4, 1), nodes=3))
    assert proposal.target.parallelism == {"lines": 1, "split": 1, "count": 1}
    # What a restart would queue counts: (1000 + 0.4 x 166.7) x 0.0005 / 4.
    assert [(c.subject, c.relation, round(c.value, 6)) for c in proposal.causes] == [("split", "<", 0.133333)]


def test_nothing_shrinks_while_more_than_lag_threshold_seconds_of_load_wait() -> None:
    soon = Ds2(lag_threshold=5.0)
    at_threshold = situation(load=1_000, parallelism=(1, 4, 1), nodes=3, waiting=5_000)
    assert decided(at_threshold, soon).target.parallelism["split"] == 1
    behind = situation(load=1_000, parallelism=(1, 4, 1), nodes=3, waiting=5_001)
    assert decided(behind, soon).target == behind.configuration
    silent = situation(load=0, parallelism=(1, 4, 1), nodes=3, waiting=10)
    assert decided(silent).target == silent.configuration


def test_useful_time_counts_and_not_only_cpu() -> None:
    # Split works 66 s for 60,000 rows, less than half of it on the CPU: 1.1 ms per row.
    seen = situation(load=1_000)
    slow = with_operator(seen, "split", busy_seconds=66.0)
    assert decided(seen).target.parallelism["split"] == 1
    assert decided(slow).target.parallelism["split"] == 2  # 1595.2 x 0.0011 = 1.75


def test_an_operator_at_its_limit_is_no_cause() -> None:
    capped = with_limits(situation(load=2_400, parallelism=(1, 1, 1)), "split", 1, 1)
    assert decided(capped).target == capped.configuration
    floored = with_limits(situation(load=500, parallelism=(1, 4, 1), nodes=3), "split", 4, 64)
    assert decided(floored).target == floored.configuration


def test_it_holds_without_a_measured_backlog() -> None:
    seen = with_application(situation(load=100, parallelism=(1, 4, 1), nodes=3), backlog=None)
    proposal = decided(seen)
    assert proposal.target == seen.configuration
    assert proposal.reason == "hold: not measured in this window: backlog"


def test_parameters_are_checked() -> None:
    with pytest.raises(ValueError, match="min < target < max"):
        Ds2(utilization_target=0.3)
    with pytest.raises(ValueError, match="catch_up_duration must be positive"):
        Ds2(catch_up_duration=0)
