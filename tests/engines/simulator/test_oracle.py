import numpy as np
import pytest

from rheostat.analyze.node_overhead import Overhead
from rheostat.engines.simulator.comparison import run_policy
from rheostat.engines.simulator.oracle import highest_load, oracle_nodes
from rheostat.engines.simulator.scenario import Scenario
from rheostat.engines.simulator.settings import Settings
from rheostat.model.configuration import Bounds, Configuration, NodeKind
from rheostat.model.topology import Operator, Topology
from rheostat.policies.static import Static

WORK = Topology("work", (Operator("work", 0.01),))  # 100 rows/s per core
SETTINGS = Settings(
    mode="storm", kinds=(NodeKind(cores=1, slots=1, startup_seconds=60),), overhead=Overhead()
)


def test_the_oracle_orders_a_node_a_start_up_time_before_it_is_needed() -> None:
    load = np.concatenate([np.full(300, 50.0), np.full(300, 150.0), np.full(300, 50.0)])
    nodes = oracle_nodes(WORK, load, SETTINGS, Bounds())
    assert nodes[:230].max() == 1
    assert (nodes[241:590] == 2).all()
    assert nodes[610:].max() == 1


def test_the_oracle_keeps_a_node_over_a_gap_shorter_than_its_start_up() -> None:
    load = np.concatenate([np.full(100, 150.0), np.full(40, 50.0), np.full(100, 150.0)])
    assert (oracle_nodes(WORK, load, SETTINGS, Bounds()) == 2).all()


def test_more_nodes_serve_more_in_every_mode() -> None:
    for mode in ("pipelined", "staged", "storm"):
        simulation = Settings(mode=mode, kinds=SETTINGS.kinds, overhead=Overhead())
        limits = [highest_load(WORK, nodes, simulation) for nodes in (1, 2, 3)]
        assert 0 < limits[0] < limits[1] < limits[2]


@pytest.mark.parametrize("mode", ["pipelined", "staged", "storm"])
@pytest.mark.parametrize("rate", [120.0, 350.0, 790.0])
def test_the_oracle_s_nodes_suffice_and_a_node_less_does_not(mode: str, rate: float) -> None:
    load = np.full(900, rate)
    scenario = Scenario(WORK, load, Settings(mode=mode, kinds=SETTINGS.kinds), Bounds(1, 50))
    oracle = scenario.oracle()
    nodes = int(oracle[0])
    assert (oracle == nodes).all()

    def lag(count: int) -> float:
        held = Configuration({"work": count}, count, count)
        return float(run_policy(scenario, Static(), initial=held, oracle=oracle).series.lag[-1])

    at_most = 2 * scenario.settings.trigger_seconds if mode == "staged" else 1.0  # a batch waits for the last
    assert lag(nodes) <= at_most
    assert lag(nodes - 1) > 2 * at_most
