"""The papers' testbeds as simulated worlds, as far as their texts describe them."""

from collections.abc import Callable

from rheostat.analyze.node_overhead import Overhead
from rheostat.control.turn import Turn
from rheostat.engines.simulator.comparison import Run, run_policy
from rheostat.engines.simulator.scenario import Scenario
from rheostat.engines.simulator.settings import Settings
from rheostat.model.configuration import Bounds, Configuration, NodeKind
from rheostat.model.topology import Topology
from rheostat.policies.registry import build
from rheostat.workloads import parse_curve, sample


def run(
    topology: Topology,
    curve: str,
    policy: str,
    settings: Settings,
    bounds: Bounds,
    initial: Configuration | None = None,
    on_turn: Callable[[Turn], None] | None = None,
) -> Run:
    """One policy on one curve; the seed drives the load's noise as well as the world's."""
    load = sample(parse_curve(curve), settings.step_seconds, settings.seed)
    return run_policy(
        Scenario(topology, load, settings, bounds), build(policy), initial=initial, on_turn=on_turn
    )


# P0, section 5: m1.medium machines of 2 vCPU; a machine takes a minute to start.
P0 = Settings(
    mode="storm",
    kinds=(NodeKind("m1.medium", cores=2, slots=2, startup_seconds=60),),
    overhead=Overhead(),
    seed=1,
)
# P1, section 5: containers of half a core that host one replica each and start in seconds.
P1 = Settings(
    mode="storm",
    kinds=(NodeKind("container", cores=0.5, slots=1, memory_mb=1024, startup_seconds=5),),
    overhead=Overhead(),
    seed=1,
)
# P2, section 5.1: four machines of 4 cores that are always there; a rebalance stops the topology 5 to 8 s.
P2 = Settings(
    mode="storm",
    kinds=(NodeKind("vm", cores=4, slots=4, startup_seconds=0),),
    overhead=Overhead(idle=0.1, slope=1.15),
    executor_startup_seconds=0,
)
# P3, section 5.1: six machines of two CPUs with four workers each.
P3 = Settings(
    mode="storm",
    kinds=(NodeKind("vm", cores=2, slots=4, startup_seconds=0),),
    overhead=Overhead(),
    executor_startup_seconds=0,
    seed=1,
)
