"""P2, Algorithm 1: the smallest parallelism, then the fewest nodes under even allocation."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from rheostat.analyze.execution import Staged, Storm
from rheostat.analyze.node_overhead import OverheadProfile
from rheostat.model.configuration import NodeKind
from rheostat.model.decision import Proposal
from rheostat.model.errors import UserError
from rheostat.policies.base import Situation
from rheostat.policies.elysium import Elysium
from rheostat.policies.example import situation

from .situations import observed, with_limits, with_operator

LINE = Elysium(proactive=True, forecast="line", horizon_minutes=5.0)


def decided(seen: Situation, policy: Elysium | None = None) -> Proposal:
    proposal, _ = (policy or Elysium()).decide(seen, {})
    assert all(cause.holds() for cause in proposal.causes)
    return proposal


def test_instances_are_the_fewest_at_or_below_core_max() -> None:
    # Cores 0.25, 1.25 and 1.0; at most 0.65 each: 1, 2 (1.92) and 2 (1.54).
    proposal = decided(situation(load=2_500, nodes=4))
    assert proposal.target.parallelism == {"lines": 1, "split": 2, "count": 2}
    assert proposal.target.nodes == 3  # five instances hold five slots


def test_exactly_core_max_is_not_overloaded() -> None:
    assert decided(situation(load=1_300)).target.parallelism["split"] == 1  # 0.65
    assert decided(situation(load=1_301)).target.parallelism["split"] == 2


def test_nodes_are_the_fewest_whose_cpu_stays_at_or_below_cpu_max() -> None:
    # Dealt in turn over two nodes: 0.25 + 0.625 + 0.5 and 0.625 + 0.5 of two cores: 69 %.
    proposal = decided(situation(load=2_500, nodes=4, model=Storm()))
    assert proposal.target.nodes == 2
    assert "the busiest of 2 would be at 69%" in proposal.reason


def test_even_allocation_may_need_a_node_more_than_the_mean_says() -> None:
    # 2.0 cores on two nodes: 1.1 and 0.9, in the mean 50 %; the fuller one is at 55 %.
    seen = situation(load=2_000, nodes=4, model=Storm())
    assert decided(seen, Elysium(cpu_max_thr=0.55)).target.nodes == 2
    # On three: 0.2 + 0.4, 0.5 + 0.4 and 0.5.
    proposal = decided(seen, Elysium(cpu_max_thr=0.52))
    assert proposal.target.nodes == 3
    assert "the busiest of 3 would be at 45%" in proposal.reason


def test_an_under_used_instance_is_taken_back() -> None:
    # Split uses 0.7: two instances would be at 0.35, below core_min, so lines 8 and 9 go back to one.
    seen = situation(load=1_400, parallelism=(1, 2, 1))
    assert decided(seen, Elysium(core_min_thr=0.5)).target.parallelism["split"] == 1
    assert decided(seen, Elysium(core_min_thr=0.35)).target.parallelism["split"] == 2
    assert decided(seen, Elysium(core_min_thr=0.0)).target.parallelism["split"] == 2


def test_an_operators_own_limits_hold() -> None:
    capped = with_limits(situation(load=5_000, nodes=4), "split", 1, 3)
    assert decided(capped).target.parallelism["split"] == 3
    floored = with_limits(situation(load=100, nodes=4), "split", 3, 8)
    assert decided(floored).target.parallelism["split"] == 3


def test_operators_and_nodes_scale_independently() -> None:
    more_instances = decided(situation(load=1_400, nodes=2))
    assert (more_instances.target.parallelism["split"], more_instances.target.nodes) == (2, 2)
    fewer_nodes = decided(situation(load=1_000, nodes=5))
    assert fewer_nodes.target.parallelism == {"lines": 1, "split": 1, "count": 1}
    assert fewer_nodes.target.nodes == 2
    assert [cause.measure for cause in fewer_nodes.causes] == ["nodes needed"]


SHARED = NodeKind(cores=1, slots=8)  # slots outnumber cores


def test_where_slots_outnumber_cores_instances_are_added_without_nodes() -> None:
    # Split needs 0.7 of a core, more than the 0.65 of one instance; all together 1.4 of two nodes' 1.6.
    seen = situation(load=1_000, nodes=2, kind=SHARED)
    busy = with_operator(seen, "split", cpu_seconds=42.0, busy_seconds=42.0)
    proposal = decided(busy)
    assert proposal.target.parallelism == {"lines": 1, "split": 2, "count": 1}
    assert proposal.target.nodes == 2
    assert [cause.measure for cause in proposal.causes] == ["instances needed"]


def test_where_slots_outnumber_cores_nodes_are_added_without_instances() -> None:
    # 0.1, 0.5 and 0.4 cores on one node of one: no instance is above 0.65, but the node is above 0.8.
    proposal = decided(situation(load=1_000, nodes=1, kind=SHARED))
    assert proposal.target.parallelism == {"lines": 1, "split": 1, "count": 1}
    assert proposal.target.nodes == 2
    assert [cause.measure for cause in proposal.causes] == ["nodes needed"]
    assert decided(situation(load=1_000, nodes=1, kind=SHARED), Elysium(cpu_max_thr=1.0)).target.nodes == 1


def test_an_operator_that_waits_gets_instances_and_no_nodes() -> None:
    # Rows of split take 0.5 ms of a core and wait for 2.5 ms: 2.7 instances, 0.45 cores.
    proposal = decided(
        situation(load=900, nodes=1, kind=SHARED, asking_seconds=0.0025), Elysium(cpu_max_thr=1)
    )
    assert proposal.target.parallelism == {"lines": 1, "split": 5, "count": 1}
    assert proposal.target.nodes == 1


def test_selectivity_is_the_mean_of_all_windows() -> None:
    seen = situation(load=1_000)  # two words a line
    _, memory = Elysium().decide(seen, {})
    rows = seen.observation.operators["split"].processed or 0.0
    short = with_operator(seen, "split", emitted={"count": 1.0 * rows})
    _, memory = Elysium().decide(short, memory)
    streams = {tuple(stream[:2]): stream[2:] for stream in memory["profile"]["streams"]}
    before, after = streams["split", "count"]
    assert after / before == pytest.approx(1.5)


def test_what_waits_is_served_in_two_minutes_beside_the_load() -> None:
    behind = situation(load=1_000, waiting=120_000)  # as much again, for two minutes
    assert decided(behind).target.parallelism == decided(situation(load=2_000)).target.parallelism


def test_it_moves_several_units_at_once_and_then_holds() -> None:
    # Cores 0.6, 3.0 and 2.4: 1, 5 and 4 instances, so five nodes.
    proposal = decided(situation(load=6_000))
    assert proposal.target.parallelism == {"lines": 1, "split": 5, "count": 4}
    assert proposal.target.nodes == 5
    settled = situation(load=6_000, parallelism=(1, 5, 4), nodes=5)
    assert decided(settled).target == settled.configuration


def test_costs_are_learned_unless_the_profile_is_exact() -> None:
    dear = with_operator(situation(load=1_000), "split", cpu_seconds=60.0)  # 1 ms per row, stated 0.5
    assert decided(dear).target.parallelism["split"] == 2  # 1.0 / 0.65
    assert decided(dear, Elysium(profile="exact")).target.parallelism["split"] == 1


def test_the_learned_cost_is_the_mean_over_all_windows() -> None:
    policy = Elysium()
    _, memory = policy.decide(situation(load=1_000), {})
    _, memory = policy.decide(with_operator(situation(load=1_000), "split", cpu_seconds=60.0), memory)
    assert memory["profile"]["costs"]["split"] == pytest.approx([120_000.0, 90.0])
    assert json.loads(json.dumps(memory)) == memory


def loaded(load: float) -> Situation:
    """Nodes that use 0.2 cores by themselves and 1.25 per core of their instances."""
    seen = situation(load=load, model=Storm())
    used: dict[str, float] = {}
    for measures in seen.observation.operators.values():
        for one in measures.instances:
            used[one.node] = used.get(one.node, 0.0) + (one.utilisation or 0.0)
    nodes = tuple(replace(n, cpu=(0.2 + 1.25 * used[n.name]) / 2) for n in seen.observation.nodes)
    return observed(seen, replace(seen.observation, nodes=nodes))


def test_the_overhead_of_a_node_is_learned_and_takes_its_part_of_the_cpu() -> None:
    policy = Elysium()
    memory: Mapping[str, Any] = {}
    for load in (500, 1_000, 1_500):
        _, memory = policy.decide(loaded(load), memory)
    overhead = OverheadProfile(memory["profile"]).overhead()
    assert (overhead.idle, overhead.slope) == pytest.approx((0.2, 1.25))
    # 2,100 rows/s: the fuller of two nodes has 1.155 cores of instances: 0.2 + 1.25 x 1.155 = 1.64 > 1.6.
    assert policy.decide(loaded(2_100), memory)[0].target.nodes == 3
    assert policy.decide(loaded(2_000), memory)[0].target.nodes == 2  # 0.2 + 1.25 x 1.1 = 1.575
    assert decided(situation(load=2_100, model=Storm())).target.nodes == 2


def after(policy: Elysium, *loads: float) -> Proposal:
    memory: Mapping[str, Any] = {}
    proposal = None
    for minute, load in enumerate(loads, start=1):
        proposal, memory = policy.decide(situation(load=load, now=60.0 * minute), memory)
    assert proposal is not None
    return proposal


def test_proactive_provides_for_the_highest_load_expected_over_the_horizon() -> None:
    # 500 rows/s more every minute: 4,500 in five minutes, 0.45, 2.25 and 1.8 cores.
    ahead = after(LINE, 1_000, 1_500, 2_000)
    assert ahead.target.parallelism == {"lines": 1, "split": 4, "count": 3}
    assert ahead.reason.startswith("expected load 4,500 rows/s")
    reactive = after(Elysium(), 1_000, 1_500, 2_000)
    assert reactive.target.parallelism == {"lines": 1, "split": 2, "count": 2}


def test_proactive_never_expects_less_than_there_is() -> None:
    assert after(LINE, 3_000, 2_500, 2_000).reason.startswith("expected load 2,000")
    assert after(LINE, 1_000, 2_000).reason.startswith("expected load 2,000")


def foreseen(*loads: float, seconds: float) -> float:
    """The load that proactive elysium expects after windows of some seconds."""
    policy = replace(LINE, period_seconds=seconds)
    memory: Mapping[str, Any] = {}
    proposal = None
    for turn, load in enumerate(loads, start=1):
        seen = situation(load=load, now=seconds * turn)
        seen = observed(seen, replace(seen.observation, start=seen.now - seconds))
        proposal, memory = policy.decide(seen, memory)
    assert proposal is not None
    found = re.search(r"load ([\d,]+)", proposal.reason)
    assert found is not None
    return float(found[1].replace(",", ""))


@pytest.mark.parametrize("quiet_minutes", [1 / 6, 1, 2, 3, 9])
def test_a_rise_of_half_a_minute_is_not_drawn_out_over_five(quiet_minutes: float) -> None:
    # From 1,000 to 1,600 rows/s in 30 s: the mean of the last minute is 1,200, 200 more than of the one
    # before. Were every minute to bring as much, five would end at 1,200 + 5 x 200.
    quiet = [1_000.0] * round(6 * quiet_minutes)
    expected = foreseen(*quiet, 1_000, 1_000, 1_000, 1_200, 1_400, 1_600, seconds=10)
    assert 1_600 <= expected <= 2_200


def test_the_period_does_not_change_what_a_steady_rise_leads_to() -> None:
    # 240 rows/s more in every minute. The newest whole minute is centred 30 s before now, so that five
    # minutes after it lie 1,200 above its mean.
    for seconds in (10, 20, 60):
        rise = [1_000 + 4 * (seconds * turn + seconds / 2) for turn in range(600 // seconds)]
        assert foreseen(*rise, seconds=seconds) == pytest.approx(1_000 + 4 * 570 + 1_200, abs=1)


def test_a_load_that_leaves_the_forecast_is_reacted_to_with_an_alert() -> None:
    policy = Elysium(proactive=True, forecast="schedule:constant:rate=2000:duration=1h")
    expected = [2_000.0] * 100
    quiet = after(policy, *expected)
    assert quiet.alert is None
    busy = after(policy, *expected, *[4_000.0] * 6)
    assert busy.alert == "6 of the last 12 loads were above the forecast, 1.2 may be: the forecast is dropped"
    assert busy.target == after(Elysium(), *expected, *[4_000.0] * 6).target


def test_a_load_from_before_the_run_is_provided_for_in_time() -> None:
    knowing = Elysium(proactive=True, history="square:low=1000:high=3000:period=10m:duration=4h")
    assert after(knowing, *[1_000.0] * 3).reason.startswith("expected load 1,0")
    assert after(knowing, *[1_000.0] * 4).target == after(Elysium(), *[3_000.0] * 4).target
    assert after(Elysium(proactive=True), *[1_000.0] * 4).target != after(knowing, *[1_000.0] * 4).target


def test_stages_share_slots_so_all_get_the_same_parallelism() -> None:
    # 3.0 busy slots in 0.65 - 3 x 0.01 of the interval: 4.84.
    proposal = decided(situation(load=3_000, model=Staged(10.0, 0.1)))
    assert set(proposal.target.parallelism.values()) == {5}
    assert proposal.target.nodes == 3


def test_parameters_are_checked() -> None:
    with pytest.raises(ValueError, match="linear or exact"):
        Elysium(profile="neural")
    with pytest.raises(ValueError, match="core_min_thr < core_max_thr"):
        Elysium(core_min_thr=0.65)
    with pytest.raises(ValueError, match=r"quantile must be 0.1, 0.5 or 0.9"):
        Elysium(quantile=0.7)
    with pytest.raises(ValueError, match="horizon_minutes positive"):
        Elysium(horizon_minutes=0)
    with pytest.raises(UserError, match="must learn first: give history=CURVE"):
        Elysium(forecast="network")
    with pytest.raises(UserError, match="at least 45 steps to be trained on"):
        Elysium(forecast="network", history="step:duration=20m")
