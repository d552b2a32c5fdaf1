"""P0, section 5.2: the DDoS application on a ramp of 0 to 16,000 tuples/s and back, in steps of 2,000."""

from pathlib import Path

from rheostat.analyze.execution import Storm
from rheostat.analyze.levels import derive_level, load_map
from rheostat.analyze.rates import visits
from rheostat.engines.simulator.comparison import Run
from rheostat.model.configuration import Bounds
from rheostat.model.topology_file import find_topology

from .worlds import P0, run

DDOS = find_topology("ddos")
RAMP = "ddos-ramp:noise=poisson"


def on_ramp(policy: str) -> Run:
    return run(DDOS, RAMP, policy, P0, Bounds(1, 10))


def test_multi_level_scaling_serves_the_ramp_with_2_machines_where_machine_only_scaling_takes_4() -> None:
    multilevel = on_ramp("multilevel(delta_load=2000)")
    machines_only = on_ramp("multilevel(delta_load=2000,containers=node)")
    assert multilevel.series.nodes.max() == 2
    assert machines_only.series.nodes.max() == 4
    for served in (multilevel, machines_only):
        assert served.measures.throughput_degradation < 0.05
        assert served.parallelism["parser"].max() == 4


def test_only_the_parser_is_ever_scaled() -> None:
    parallelism = on_ramp("multilevel(delta_load=2000)").parallelism
    assert [name for name, counts in parallelism.items() if counts.max() > 1] == ["parser"]


def test_the_learned_levels_are_those_of_table_1_but_for_one_boundary() -> None:
    # Table 1: (1,1) to 4,000; (1,2) to 12,000; (1,2)+(1,1) to 14,000; (1,2)+(1,2) to 16,000. The second
    # boundary cannot follow from instances of equal capacity: one must fail at 6,000 (health below 0.9, so
    # under 5,400 each) and two must hold 12,000 (at least 5,400 each). Ours is at 10,000.
    kind = P0.kinds[0]
    reach = visits(DDOS)
    per_row = {o.name: reach[o.name] * o.cost_seconds / kind.slot_cores for o in DDOS.operators}
    found = {}
    for load in range(2_000, 16_001, 2_000):
        level = derive_level(load, per_row, Storm(), kind, target=0.9, node_limit=0.9)
        found[load] = (level.nodes, level.parallelism["parser"])
    assert found == {
        2_000: (1, 1),
        4_000: (1, 1),
        6_000: (1, 2),
        8_000: (1, 2),
        10_000: (1, 2),
        12_000: (2, 3),
        14_000: (2, 3),
        16_000: (2, 4),
    }


def test_the_map_that_was_found_on_spark_needs_the_papers_machines_at_most() -> None:
    levels = load_map(Path(__file__).parents[2] / "examples" / "maps" / "ddos.yaml")
    assert [level.nodes for level in levels] == [1, 2]
    assert levels[-1].load > 14_000


def test_acting_ahead_of_the_schedule_halves_the_degradation_of_reacting() -> None:
    reactive = on_ramp("multilevel(delta_load=2000)").measures
    proactive = on_ramp("multilevel(delta_load=2000,schedule=ddos-ramp)").measures
    assert proactive.throughput_degradation < 0.5 * reactive.throughput_degradation
    assert proactive.p99_lag_seconds < reactive.p99_lag_seconds


def test_a_load_that_follows_its_schedule_raises_no_alert_and_an_attack_does() -> None:
    # Section 5.3: beyond the expected traffic the application reacts and raises an alert.
    policy = "multilevel(schedule=ddos-ramp)"
    assert run(DDOS, "ddos-ramp", policy, P0, Bounds(1, 10)).alerts == 0
    attack = run(DDOS, "ddos-ramp:scale=1.5", policy, P0, Bounds(1, 10))
    assert attack.alerts > 0
