"""Batch time over trigger interval, exponentially weighted; ceil(n x occupancy) outside [0.75, 1.0]."""

import pytest

from rheostat.analyze.execution import Pipelined, Staged
from rheostat.model.configuration import Bounds
from rheostat.policies.base import Situation
from rheostat.policies.example import situation
from rheostat.policies.occupancy import Occupancy

from .situations import with_application


def batches(occupancy: float, count: int = 4, nodes: int = 2, bounds: Bounds = Bounds(1, 20)) -> Situation:
    """Batches that take so much of a ten-second trigger interval."""
    seen = situation(parallelism=(count, count, count), nodes=nodes, model=Staged(10.0), bounds=bounds)
    return with_application(seen, batch_seconds=10 * occupancy, trigger_seconds=10.0)


@pytest.mark.parametrize(
    ("occupancy", "slots"), [(0.75, 4), (1.0, 4), (0.74, 3), (1.01, 5), (1.5, 6), (0.5, 2), (0.0, 1)]
)
def test_slots_become_slots_times_occupancy_rounded_up_outside_the_band(occupancy: float, slots: int) -> None:
    proposal, _ = Occupancy().decide(batches(occupancy), {})
    assert proposal.target.parallelism == dict.fromkeys(("lines", "split", "count"), slots)
    assert proposal.target.nodes == -(-slots // 2)
    assert all(cause.holds() for cause in proposal.causes)


def test_the_newest_window_weighs_alpha() -> None:
    policy = Occupancy(alpha=0.5)
    _, memory = policy.decide(batches(0.9), {})
    assert memory == {"occupancy": pytest.approx(0.9)}
    proposal, after = policy.decide(batches(1.5), memory)  # 0.5 x 1.5 + 0.5 x 0.9 = 1.2
    assert proposal.causes[0].value == pytest.approx(1.2)
    assert proposal.target.parallelism["split"] == 5
    assert after == {"occupancy": None}  # the average spoke of another size


def test_one_long_batch_within_the_average_changes_nothing() -> None:
    policy = Occupancy(alpha=0.2)
    proposal, memory = policy.decide(batches(1.6), {"occupancy": 0.8})  # 0.2 x 1.6 + 0.8 x 0.8 = 0.96
    assert proposal.target == batches(1.6).configuration
    assert memory == {"occupancy": pytest.approx(0.96)}


def test_without_batches_the_busiest_operators_utilisation_stands_in() -> None:
    proposal, _ = Occupancy().decide(situation(load=3_000), {})  # split is 1.5 busy
    assert proposal.target.parallelism == {"lines": 2, "split": 2, "count": 2}
    assert proposal.reason == "occupancy 1.50 is outside [0.75, 1.0]: 3 slots x 1.50 -> 6"


def test_parallelism_beyond_the_slots_does_not_wind_up_at_the_limit_of_nodes() -> None:
    seen = batches(2.0, count=8, nodes=2, bounds=Bounds(1, 2))  # four slots, all that may be had
    proposal, memory = Occupancy().decide(seen, {})
    assert proposal.target == seen.configuration
    assert proposal.reason.startswith("hold: nothing left to change: occupancy 2.00")
    assert memory == {"occupancy": 2.0}
    # And when the load falls, the four slots that worked are what shrinks.
    proposal, _ = Occupancy().decide(batches(0.5, count=8, nodes=2, bounds=Bounds(1, 2)), {})
    assert proposal.target.parallelism["split"] == 2
    assert proposal.target.nodes == 1


def test_parameters_are_checked() -> None:
    with pytest.raises(ValueError, match="alpha"):
        Occupancy(alpha=0.0)
    with pytest.raises(ValueError, match="low below high"):
        Occupancy(low=1.0)


def test_batches_of_real_time_mode_are_spans_of_time_and_no_occupancy() -> None:
    light = with_application(situation(load=1_600, model=Pipelined()), batch_seconds=5.6, trigger_seconds=5.0)
    assert max(one.utilisation for one in light.evaluation.operators.values()) == pytest.approx(0.8)
    assert Occupancy().decide(light, {})[0].target == light.configuration
