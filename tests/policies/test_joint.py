"""P2, section 5.2: an operator's scale-out brings a node, all else is independent, one unit at a time."""

from dataclasses import replace

import pytest

from rheostat.analyze.execution import Storm
from rheostat.model.configuration import Bounds
from rheostat.model.decision import Proposal
from rheostat.policies.base import Situation
from rheostat.policies.example import situation
from rheostat.policies.joint import Joint

from .situations import observed, with_nodes, with_operator


def decided(seen: Situation, policy: Joint | None = None) -> Proposal:
    proposal, _ = (policy or Joint()).decide(seen, {})
    assert all(cause.holds() for cause in proposal.causes)
    return proposal


def test_an_operators_scale_out_brings_a_node() -> None:
    proposal = decided(situation(load=1_400, nodes=4))  # split 0.7 > 0.65
    assert proposal.target.parallelism == {"lines": 1, "split": 2, "count": 1}
    assert proposal.target.nodes == 5  # although four nodes have slots to spare


def test_several_scale_outs_in_a_window_bring_one_node() -> None:
    proposal = decided(situation(load=1_700, nodes=4))  # split 0.85, count 0.68
    assert proposal.target.parallelism == {"lines": 1, "split": 2, "count": 2}
    assert proposal.target.nodes == 5


def test_it_moves_one_unit_at_a_time_however_large_the_load() -> None:
    proposal = decided(situation(load=12_000, nodes=4))
    assert proposal.target.parallelism == {"lines": 2, "split": 2, "count": 2}
    assert proposal.target.nodes == 5


def test_scale_in_of_operators_leaves_the_nodes_alone() -> None:
    proposal = decided(situation(load=800, parallelism=(1, 2, 1), nodes=4))  # split 0.4 / 2 < 0.25
    assert proposal.target.parallelism == {"lines": 1, "split": 1, "count": 1}
    assert proposal.target.nodes == 4


def test_one_may_grow_while_another_shrinks() -> None:
    proposal = decided(situation(load=1_700, parallelism=(1, 1, 3), nodes=4))  # split 0.85, count 0.23
    assert proposal.target.parallelism == {"lines": 1, "split": 2, "count": 2}
    assert proposal.target.nodes == 5


def test_nodes_follow_their_own_cpu_only_when_no_operator_changes() -> None:
    calm = situation(load=1_000, nodes=4)  # split 0.5, count 0.4; nodes are 12.5 % busy on average
    policy = Joint(cpu_min_thr=0.4, cpu_max_thr=0.8)
    assert decided(calm, policy).target.nodes == 3
    assert decided(with_nodes(calm, cpu=0.4), policy).target.nodes == 4
    assert decided(with_nodes(calm, cpu=0.8), policy).target.nodes == 4
    assert decided(with_nodes(calm, cpu=0.81), policy).target.nodes == 5
    assert decided(calm, policy).target.parallelism == calm.configuration.parallelism


def test_a_node_is_not_freed_while_its_slots_are_needed() -> None:
    assert decided(situation(load=1_000, nodes=2)).target.nodes == 2  # three instances need two nodes
    assert decided(situation(load=1_000, nodes=2, model=Storm())).target.nodes == 1  # threads may share cores


def test_a_node_is_not_freed_below_the_bounds() -> None:
    proposal = decided(situation(load=1_000, nodes=4, bounds=Bounds(4, 9)))
    assert proposal.target.nodes == 4
    assert proposal.causes == ()


def test_a_node_is_not_freed_while_another_ones_cpu_is_unknown() -> None:
    calm = situation(load=1_000, nodes=4)
    first, *rest = calm.observation.nodes
    nodes = (replace(first, cpu=None), *rest)
    proposal = decided(observed(calm, replace(calm.observation, nodes=nodes)))
    assert proposal.target == calm.configuration
    assert "not measured" in proposal.reason
    assert "not measured" in decided(with_nodes(calm, cpu=None)).reason


def test_the_busiest_instance_counts_and_an_unknown_one_is_not_taken_as_idle() -> None:
    seen = situation(load=800, parallelism=(1, 2, 1), nodes=4)  # split 0.2 each
    one, other = seen.observation.operators["split"].instances
    skewed = with_operator(seen, "split", instances=(replace(one, utilisation=0.7), other))
    assert decided(skewed).target.parallelism["split"] == 3
    busy = situation(load=1_200, parallelism=(1, 2, 1), nodes=4)  # split 0.3 each
    idle, lost = (replace(one, utilisation=used) for used in (0.0, None))
    unknown = with_operator(busy, "split", instances=(idle, lost))
    assert decided(unknown).target.parallelism["split"] == 2


def test_at_the_limit_of_nodes_it_says_that_nothing_is_left_to_change() -> None:
    full = with_nodes(situation(load=1_000, nodes=4, bounds=Bounds(1, 4)), cpu=0.9)
    assert decided(full).reason.startswith("hold: nothing left to change: a node more")


def test_thresholds_are_checked() -> None:
    with pytest.raises(ValueError, match="below its maximum"):
        Joint(core_min_thr=0.7)
    with pytest.raises(ValueError, match="below its maximum"):
        Joint(cpu_min_thr=0.8)
