"""P2, Figure 9: ELYSIUM against joint scaling on T1 (rolling top-k words), four machines of four cores."""

from dataclasses import replace

import pytest

from rheostat.engines.simulator.comparison import Run
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


def both(seed: int) -> dict[str, tuple[Run, Run]]:
    world = replace(P2, seed=seed)
    return {
        name: (
            run(T1, curve, "joint", world, Bounds(1, MACHINES)),
            run(T1, curve, "elysium", world, Bounds(1, MACHINES)),
        )
        for name, curve in CURVES.items()
    }


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_elysium_saves_more_nodes_than_joint_on_all_five_curves_and_degrades_less_on_four(seed: int) -> None:
    # Figure 9, T1: nodes saved 43, 58, 35, 47, 45 % against 32, 50, 25, 25, 24 %; throughput degradation
    # lower on all but the square wave. Here sine is the exception: ELYSIUM sits closer to its limits there.
    runs = both(seed)
    for joint, elysium in runs.values():
        assert elysium.measures.mean_nodes < joint.measures.mean_nodes
    better = [
        name
        for name, (joint, elysium) in runs.items()
        if elysium.measures.throughput_degradation < joint.measures.throughput_degradation
    ]
    assert len(better) >= 4


def test_elysium_needs_fewer_reconfigurations_after_a_step_because_it_scales_several_units_at_once() -> None:
    # Section 5.2: joint moves one unit at a time and takes longer to follow the step.
    joint, elysium = (
        run(T1, CURVES["step"], policy, replace(P2, seed=1), Bounds(1, MACHINES)).measures
        for policy in ("joint", "elysium")
    )
    assert elysium.reconfigurations < joint.reconfigurations
    assert elysium.settling_seconds is not None
    assert joint.settling_seconds is not None
    assert elysium.settling_seconds < joint.settling_seconds
