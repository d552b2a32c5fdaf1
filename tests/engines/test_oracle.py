import numpy as np

from rheostat.analyze.profiles import Overhead
from rheostat.engines.simulator.comparison import Scenario, run_policy
from rheostat.engines.simulator.oracle import highest_load, oracle_nodes
from rheostat.engines.simulator.settings import Settings
from rheostat.model.configuration import Bounds, NodeKind
from rheostat.model.topology import Operator, Topology
from rheostat.policies.registry import available, build
from rheostat.workloads import parse_curve, sample

WORK = Topology("work", (Operator("work", 0.01),))  # 100 rows/s per core
WORLD = Settings(mode="storm", kinds=(NodeKind(cores=1, slots=1, startup_seconds=60),), overhead=Overhead())


def test_the_oracle_orders_a_node_a_start_up_time_before_it_is_needed() -> None:
    load = np.concatenate([np.full(300, 50.0), np.full(300, 150.0), np.full(300, 50.0)])
    nodes = oracle_nodes(WORK, load, WORLD, Bounds())
    assert nodes[:230].max() == 1
    assert (nodes[241:590] == 2).all()
    assert nodes[610:].max() == 1


def test_the_oracle_keeps_a_node_over_a_gap_shorter_than_its_start_up() -> None:
    load = np.concatenate([np.full(100, 150.0), np.full(40, 50.0), np.full(100, 150.0)])
    assert (oracle_nodes(WORK, load, WORLD, Bounds()) == 2).all()


def test_more_nodes_serve_more_in_every_mode() -> None:
    for mode in ("pipelined", "staged", "storm"):
        world = Settings(mode=mode, kinds=WORLD.kinds, overhead=Overhead())
        limits = [highest_load(WORK, nodes, world) for nodes in (1, 2, 3)]
        assert limits == sorted(limits)
        assert limits[0] > 0


def test_no_policy_that_serves_the_load_uses_fewer_node_seconds_than_the_oracle() -> None:
    load = sample(parse_curve("sine:duration=1h:period=30m:low=50:high=800"))
    for mode in ("pipelined", "staged", "storm"):
        scenario = Scenario(WORK, load, Settings(mode=mode, kinds=WORLD.kinds), Bounds(1, 50))
        for name in available():
            measures = run_policy(scenario, build(name)).measures
            if measures.mean_lag_seconds < 1:
                assert measures.node_seconds_to_oracle >= 0.999, (mode, name)
