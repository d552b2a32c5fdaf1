"""P3: the activity level, Tables 1 and 2 cell by cell, and the new degree (sections 3 and 4)."""

import json
from dataclasses import replace
from typing import Literal

import pytest

from rheostat.analyze.execution import Staged
from rheostat.model.decision import Proposal
from rheostat.model.topology import Stream
from rheostat.policies.autoscale import Autoscale
from rheostat.policies.base import Memory, Situation
from rheostat.policies.example import situation

from .situations import observed, of_arrivals, with_application, with_limits, with_operator

Trend = Literal["falling", "flat", "rising"]
CAPACITY = 4 * 60_000.0  # rows that four instances of 1 ms per row finish in a minute
DOWN = (Stream("up", "down"),)


def arrivals(activity: float, trend: Trend = "flat") -> tuple[float, ...]:
    """Six parts whose line, continued for six more, brings `activity` times the capacity.

    y = b + s k summed over k = 6..11 is 6 b + 51 s.
    """
    expected = activity * CAPACITY
    slope = {"falling": -1, "flat": 0, "rising": 1}[trend] * expected / 510
    return tuple((expected - 51 * slope) / 6 + slope * part for part in range(6))


def decided(seen: Situation, policy: Autoscale | None = None) -> Proposal:
    proposal, _ = (policy or Autoscale()).decide(seen, {})
    assert all(cause.holds() for cause in proposal.causes)
    return proposal


@pytest.mark.parametrize(
    ("trend", "activity", "degree"),
    [
        # Table 1: low, normal, high, critical. Four instances; 'in' gives ceil(4 x activity).
        ("falling", 0.40, 2),
        ("falling", 0.70, 4),
        ("falling", 0.90, 4),
        ("falling", 1.30, 6),
        ("flat", 0.20, 1),
        ("flat", 0.70, 4),
        ("flat", 0.90, 4),
        ("flat", 1.30, 6),
        ("rising", 0.40, 4),
        ("rising", 0.70, 4),
        ("rising", 0.90, 5),  # high but not critical: one more
        ("rising", 1.30, 6),
    ],
)
def test_the_local_matrix(trend: Trend, activity: float, degree: int) -> None:
    proposal = decided(of_arrivals({"only": arrivals(activity, trend)}))
    assert proposal.target.parallelism == {"only": degree}


def test_exactly_theta_min_is_low_and_exactly_theta_max_or_one_is_not_yet_the_next_level() -> None:
    assert decided(of_arrivals({"only": arrivals(0.5)})).target.parallelism == {"only": 2}
    at_theta_max = of_arrivals({"only": arrivals(0.75, "rising")})
    assert decided(at_theta_max, Autoscale(theta_max=0.76)).target.parallelism == {"only": 4}
    assert decided(at_theta_max, Autoscale(theta_max=0.74)).target.parallelism == {"only": 5}
    assert decided(of_arrivals({"only": (CAPACITY / 6,) * 6})).target.parallelism == {"only": 4}


@pytest.mark.parametrize(
    ("upstream", "local", "degree"),
    [
        # Table 2, with activities 0.7 (nothing), 0.5 (in: 2) and 1.5 (out: 6).
        (0.7, 0.7, 4),
        (0.7, 0.5, 2),
        (0.7, 1.5, 6),
        (0.5, 0.7, 4),
        (0.5, 0.5, 2),
        (0.5, 1.5, 6),
        (1.5, 0.7, 5),  # turned 'out' from above: one more, though the activity is below 1
        (1.5, 0.5, 4),  # 'in' turned into 'nothing'
        (1.5, 1.5, 6),
    ],
)
def test_the_global_matrix(upstream: float, local: float, degree: int) -> None:
    seen = of_arrivals({"up": arrivals(upstream), "down": arrivals(local)}, DOWN)
    proposal = decided(seen)
    assert proposal.target.parallelism["down"] == degree


def test_an_operator_turned_out_by_the_global_matrix_never_shrinks() -> None:
    # ceil(4 x 0.55) would be 3.
    seen = of_arrivals({"up": arrivals(1.5), "down": arrivals(0.55)}, DOWN)
    proposal = decided(seen)
    assert proposal.target.parallelism == {"up": 6, "down": 5}
    assert proposal.rejected == ("down: local nothing became out because of what happens upstream",)


def test_out_prevails_over_in_among_several_upstream_operators() -> None:
    streams = (Stream("a", "join"), Stream("b", "join"))
    seen = of_arrivals({"a": arrivals(0.25), "b": arrivals(1.25), "join": arrivals(0.5)}, streams)
    assert decided(seen).target.parallelism == {"a": 1, "b": 5, "join": 4}


def test_the_action_of_the_global_matrix_travels_on_downstream() -> None:
    streams = (*DOWN, Stream("down", "last"))
    seen = of_arrivals({"up": arrivals(1.5), "down": arrivals(0.7), "last": arrivals(0.7)}, streams)
    assert decided(seen).target.parallelism == {"up": 6, "down": 5, "last": 5}


def test_rows_that_wait_count_as_load() -> None:
    # Equation (3): 0.7 arrives and 0.5 waits, so 1.2 is critical: ceil(4 x 1.2) = 5.
    seen = of_arrivals({"only": arrivals(0.7)}, waiting={"only": 0.5 * CAPACITY})
    proposal = decided(seen)
    assert proposal.target.parallelism == {"only": 5}
    assert proposal.causes[0].value == pytest.approx(1.2)


def test_the_degree_is_capped_by_the_operators_maximum() -> None:
    seen = with_limits(of_arrivals({"only": arrivals(3.0)}), "only", 1, 7)
    assert decided(seen).target.parallelism == {"only": 7}


def test_equation_2_as_printed_sums_to_what_arrived_and_anticipates_nothing() -> None:
    # 120,000 rows arrived, the line continued gives 264,000; split takes 0.5 ms per row on one instance.
    rising = situation(load=1_900, arrivals=(10_000, 14_000, 18_000, 22_000, 26_000, 30_000))
    next_window, printed = decided(rising), decided(rising, Autoscale(printed_equation=True))
    assert next_window.target.parallelism == {"lines": 1, "split": 3, "count": 2}
    assert {c.subject: round(c.value, 6) for c in next_window.causes} == {"split": 2.2, "count": 0.88}
    assert printed.target.parallelism == {"lines": 1, "split": 2, "count": 2}  # count: out from above
    assert [(c.subject, round(c.value, 6)) for c in printed.causes] == [("split", 1.0)]


def test_a_falling_line_never_predicts_negative_arrivals() -> None:
    falling = of_arrivals({"only": (90_000.0, 60_000.0, 30_000.0, 0.0, 0.0, 0.0)})
    assert decided(falling).target.parallelism == {"only": 1}


def test_nothing_shrinks_in_the_window_after_a_change_but_growth_goes_on() -> None:
    policy = Autoscale()
    _, memory = policy.decide(of_arrivals({"only": arrivals(1.5)}), {})
    for activity, degree in ((0.3, 4), (0.9, 4), (1.5, 6)):
        proposal, after = policy.decide(of_arrivals({"only": arrivals(activity, "falling")}), memory)
        assert proposal.target.parallelism == {"only": degree}
        assert after["changed"] == (degree != 4)
    proposal, _ = policy.decide(of_arrivals({"only": arrivals(0.3, "falling")}), {"changed": False})
    assert proposal.target.parallelism == {"only": 2}


def test_a_full_queue_is_worked_off_before_anything_shrinks_when_the_source_falls_silent() -> None:
    silent = of_arrivals({"only": (0.0,) * 6}, waiting={"only": 1.5 * CAPACITY})
    assert decided(silent).target.parallelism == {"only": 6}


def test_arrivals_that_were_not_measured_are_taken_as_the_load_asks_and_not_as_none() -> None:
    seen = situation(load=3_200, parallelism=(2, 2, 2), nodes=3)  # lines 0.16, split 0.8, count 0.64
    for waiting in (None, 0.0):
        for name in seen.topology.names:
            seen = with_operator(seen, name, arrivals=(), received=None, waiting=waiting)
        assert decided(seen).target.parallelism == {"lines": 1, "split": 2, "count": 2}


def test_nothing_shrinks_where_nobody_measured_what_waits() -> None:
    seen = situation(load=200, parallelism=(2, 2, 2), nodes=3)
    for name in seen.topology.names:
        seen = with_operator(seen, name, waiting=None)
    assert decided(seen).target.parallelism == {"lines": 1, "split": 1, "count": 1}
    unknown = decided(with_application(seen, backlog=None))
    assert unknown.target == seen.configuration
    growing = with_application(situation(load=4_000), backlog=None)
    for name in growing.topology.names:
        growing = with_operator(growing, name, waiting=None)
    assert decided(growing).target.parallelism["split"] == 2


def test_where_only_the_sources_queue_their_backlog_is_passed_on_at_each_operators_rate() -> None:
    seen = with_application(situation(load=1_000), backlog=60_000.0)
    for name in seen.topology.names:
        seen = with_operator(seen, name, waiting=None)
    # A minute of load waits, so every activity doubles: split 1.0 and count 0.8 (flat: nothing).
    assert decided(seen).target == seen.configuration
    more = with_application(seen, backlog=90_000.0)
    assert decided(more).target.parallelism == {"lines": 1, "split": 2, "count": 2}


def one_batch_each(*loads: float, seconds: float = 10.0, operators: bool = False) -> tuple[Proposal, Memory]:
    """Decide after windows that saw one batch each, as Spark tells of them or with a queue per operator."""
    memory: Memory = {}
    proposal = None
    for turn, load in enumerate(loads, start=1):
        seen = situation(load=load, parallelism=(1, 2, 2), nodes=3, now=seconds * turn)
        seen = observed(seen, replace(seen.observation, start=seen.now - seconds))
        for name, measures in seen.observation.operators.items():
            rows = (measures.received or 0.0) * seconds / 60
            queue = {"waiting": 0.0, "received": rows} if operators else {"waiting": None}
            seen = with_operator(seen, name, arrivals=(rows,), **queue)
        proposal, memory = Autoscale().decide(seen, memory)
        assert json.loads(json.dumps(memory)) == memory
    assert proposal is not None
    return proposal, memory


@pytest.mark.parametrize("operators", [False, True])
def test_one_batch_per_decision_has_a_trend_over_three(operators: bool) -> None:
    # Split takes 0.5 ms per row on two instances. 2,800, 3,000 and 3,200 rows/s lead to 3,400: 0.85, high.
    rising, _ = one_batch_each(2_800, 3_000, 3_200, operators=operators)
    assert rising.target.parallelism["split"] == 3
    assert [(c.subject, round(c.value, 6)) for c in rising.causes] == [("split", 0.85)]
    # As much without a trend, or with one that falls, is nothing to act on.
    for steady in ((3_400, 3_400, 3_400), (3_800, 3_700, 3_600)):
        flat, _ = one_batch_each(*steady, operators=operators)
        assert flat.target.parallelism["split"] == 2
    # Two points are no trend.
    assert one_batch_each(3_000, 3_400, operators=operators)[0].target.parallelism["split"] == 2


def test_the_trend_counts_seconds_not_windows() -> None:
    # The same rise per window: in windows of 30 s it is a third per second, and leads as far in the next.
    for seconds in (10.0, 30.0):
        rising, _ = one_batch_each(2_800, 3_000, 3_200, seconds=seconds)
        assert rising.causes[0].value == pytest.approx(0.85)


def test_a_window_that_was_missed_makes_the_rise_less_steep() -> None:
    _, memory = one_batch_each(2_800, 3_000)
    late = situation(load=3_200, parallelism=(1, 2, 2), nodes=3, now=50.0)
    late = observed(late, replace(late.observation, start=40.0))
    for name in late.topology.names:
        late = with_operator(late, name, arrivals=(), waiting=None)
    # Middles 5, 15 and 45, in the mean 65/3 and 3,000: a slope of 8,000 / 866.67, so 3,308 rows/s at 55.
    proposal, _ = Autoscale().decide(late, memory)
    assert proposal.causes[0].value == pytest.approx(3_308 / 4_000, abs=1e-3)


def test_it_remembers_three_windows_of_this_run_only() -> None:
    _, memory = one_batch_each(*[1_000.0 + turn for turn in range(50)])
    assert [middle for middle, _ in memory["windows"]] == [475.0, 485.0, 495.0]
    later = situation(load=1_000, now=10_000.0)
    assert len(Autoscale().decide(later, memory)[1]["windows"]) == 1
    other = {"windows": [[30.0, {"another": 5.0}]]}
    assert len(Autoscale().decide(situation(load=1_000, now=120.0), other)[1]["windows"]) == 1


def test_stages_share_one_activity() -> None:
    # Busy 0.1 + 0.5 + 0.4 slots on one slot each, plus three overheads of 0.01: 1.03 of the interval.
    seen = situation(load=1_000, model=Staged(10.0, 0.1))
    proposal = decided(seen)
    assert {round(cause.value, 3) for cause in proposal.causes} == {1.03}
    assert proposal.target.parallelism == {"lines": 2, "split": 2, "count": 2}


def test_the_reason_names_only_operators_that_change() -> None:
    proposal = decided(situation(load=100))
    assert proposal.reason == "no operator's activity asks for a change that its limits allow"
    assert proposal.causes == ()
    assert "lines" not in decided(situation(load=2_200)).reason


def test_thresholds_must_rise() -> None:
    with pytest.raises(ValueError, match="theta_min < theta_max"):
        Autoscale(theta_min=0.8, theta_max=0.8)
