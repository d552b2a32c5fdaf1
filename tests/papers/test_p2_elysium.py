"""P2, Figure 9: ELYSIUM against joint scaling on T1 (rolling top-k words), four machines of four cores."""

from dataclasses import replace
from functools import cache

import pytest

from rheostat.analyze.judging import Measures
from rheostat.engines.simulator.settings import Settings
from rheostat.model.configuration import Bounds
from rheostat.model.topology_file import find_topology

from .worlds import P2, run

# The paper prints selectivities (Table 2) but no costs: with ours, 1,000 tweets/s need all four machines.
T1 = find_topology("topk")
MACHINES = 4
CURVES = {
    "stair": "stair:duration=40m:noise=poisson",
    "step": "step:duration=20m:noise=poisson",
    "square": "square:duration=40m:period=10m:noise=poisson",
    "sine": "sine:duration=30m:period=15m:noise=poisson",
    "bursty": "bursty:duration=3d:noise=poisson",  # 60:1, as the paper's Twitter trace
}


JUMPS = ("step", "square")  # where several units are missing at once
# The paper does not print below which CPU joint gives a node back; its default here, 0.5, is our choice.
THRESHOLDS = (0.3, 0.5, 0.7)


@cache
def judged(curve: str, policy: str, seed: int) -> Measures:
    return run(T1, CURVES[curve], policy, replace(P2, seed=seed), Bounds(1, MACHINES)).measures


def pairs(seed: int, curve: str) -> list[tuple[Measures, Measures]]:
    """Joint at each threshold, and elysium beside it."""
    elysium = judged(curve, "elysium", seed)
    return [(judged(curve, f"joint(cpu_min_thr={threshold})", seed), elysium) for threshold in THRESHOLDS]


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("curve", JUMPS)
def test_after_a_jump_elysium_saves_more_nodes_and_degrades_by_less_than_half(curve: str, seed: int) -> None:
    # Figure 9, T1: on the step it saves 58 against 50 % of the nodes and degrades by 0.59 against 0.78; on
    # the square wave 35 against 25 %, but 1.7 against 1.49: there ours does better than the paper's.
    for joint, elysium in pairs(seed, curve):
        assert elysium.mean_nodes < joint.mean_nodes
        assert elysium.throughput_degradation < 0.5 * joint.throughput_degradation


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("curve", sorted(CURVES.keys() - set(JUMPS)))
def test_on_slow_curves_joint_is_never_better_in_both_nodes_and_degradation(curve: str, seed: int) -> None:
    # Which of them degrades less there hangs on joint's threshold: a low one buys calm with nodes.
    for joint, elysium in pairs(seed, curve):
        fewer = joint.mean_nodes <= elysium.mean_nodes
        calmer = joint.throughput_degradation <= elysium.throughput_degradation
        assert not (fewer and calmer)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("curve", CURVES)
def test_elysium_saves_more_nodes_than_joint_that_gives_nodes_back_below_half(curve: str, seed: int) -> None:
    # Figure 9, T1: 43, 58, 35, 47, 45 % against 32, 50, 25, 25, 24 %.
    for joint, elysium in pairs(seed, curve)[: THRESHOLDS.index(0.5) + 1]:
        assert elysium.mean_nodes < joint.mean_nodes


def test_elysium_needs_fewer_reconfigurations_after_a_step_because_it_scales_several_units_at_once() -> None:
    # Section 5.2: joint moves one unit at a time and takes longer to follow the step.
    joint, elysium = judged("step", "joint(cpu_min_thr=0.5)", 1), judged("step", "elysium", 1)
    assert elysium.reconfigurations < joint.reconfigurations
    assert elysium.settling_seconds is not None
    assert joint.settling_seconds is not None
    assert elysium.settling_seconds < joint.settling_seconds


# Figure 13: proactive ELYSIUM; here it learns from a load with another seed, and nodes start in a minute.
BEFORE = {
    "stair": "stair:duration=3h:noise=poisson:seed=77",
    "step": "step:duration=3h:noise=poisson:seed=77",
    "square": "square:duration=4h:period=10m:noise=poisson:seed=77",
    "sine": "sine:duration=4h:period=15m:noise=poisson:seed=77",
    "bursty": "bursty:duration=20d:noise=poisson:seed=77",
}
RHYTHM = ("square", "sine", "bursty")


def both(curve: str) -> tuple[Measures, Measures]:
    """Reactive and proactive elysium on slow nodes."""
    reactive, proactive = (
        run(T1, CURVES[curve], policy, Settings(seed=1), Bounds(1, 20)).measures
        for policy in ("elysium", f"elysium(proactive=true,history={BEFORE[curve]})")
    )
    return reactive, proactive


@pytest.mark.parametrize("curve", RHYTHM)
def test_proactive_degrades_by_less_than_half_where_there_is_a_rhythm(curve: str) -> None:
    # Section 5.2: on the square wave the degradation falls from 1.7 to 1.2, and hardly more nodes are used.
    reactive, proactive = both(curve)
    assert proactive.throughput_degradation < 0.5 * reactive.throughput_degradation
    assert proactive.p99_lag_seconds < reactive.p99_lag_seconds
    assert proactive.nodes_saved > reactive.nodes_saved - 0.05


@pytest.mark.parametrize("curve", sorted(CURVES.keys() - set(RHYTHM)))
def test_proactive_is_no_worse_where_there_is_none(curve: str) -> None:
    reactive, proactive = both(curve)
    assert proactive.throughput_degradation <= 1.02 * reactive.throughput_degradation
    assert proactive.nodes_saved >= reactive.nodes_saved - 0.01
