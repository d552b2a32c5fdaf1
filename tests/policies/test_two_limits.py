"""In Real-Time Mode instances and CPU run out apart, where nodes have more slots than cores."""

from dataclasses import replace

import pytest

from rheostat.model.configuration import NodeKind
from rheostat.model.decision import Proposal
from rheostat.policies.base import Situation
from rheostat.policies.example import situation
from rheostat.policies.registry import build

from .situations import with_application

SHARED = NodeKind(cores=1, slots=12)
# Those that leave the number of nodes to what their operators need.
OPERATORS_FIRST = ("threshold", "ds2", "autoscale", "occupancy")
# Those with a rule of their own for the CPU of nodes.
NODES_TOO = ("elysium", "joint", "multilevel")


def decided(seen: Situation, policy: str) -> Proposal:
    proposal, _ = build(policy).decide(seen, {})
    assert all(cause.holds() for cause in proposal.causes)
    return proposal


def spread(load: float) -> Situation:
    """Instances that are idle for two thirds of the time, on one node."""
    return situation(load=load, parallelism=(1, 2, 2), nodes=1, kind=SHARED)


@pytest.mark.parametrize("policy", [*OPERATORS_FIRST, *NODES_TOO])
def test_a_full_node_brings_a_node_although_its_instances_are_idle(policy: str) -> None:
    full = spread(1_300)  # 1.3 cores of work
    assert max(one.utilisation for one in full.evaluation.operators.values()) < 0.33
    assert decided(full, policy).target.nodes == (3 if policy == "ds2" else 2)  # it wants them 70 % busy


@pytest.mark.parametrize("policy", OPERATORS_FIRST)
def test_no_operator_gets_more_instances_only_because_the_node_is_full(policy: str) -> None:
    had, wanted = spread(1_300).configuration.parallelism, decided(spread(1_300), policy).target.parallelism
    assert (
        all(wanted[name] <= had[name] for name in had) or policy == "occupancy"
    )  # it scales everything alike


@pytest.mark.parametrize("policy", OPERATORS_FIRST)
def test_slots_that_are_free_take_more_instances_without_a_node(policy: str) -> None:
    # Split holds more than its one instance, but takes little CPU: it asks a remote service.
    asking = situation(load=500, nodes=1, asking_seconds=0.0025, kind=SHARED)
    proposal = decided(asking, policy)
    assert proposal.target.parallelism["split"] > 1
    assert proposal.target.nodes == 1


@pytest.mark.parametrize("policy", OPERATORS_FIRST)
def test_nodes_that_the_cpu_needs_are_not_given_back(policy: str) -> None:
    # 1.3 cores on two nodes, which have slots for eight times as many instances.
    needed = replace(spread(1_300), configuration=replace(spread(1_300).configuration, nodes=2, executors=2))
    node = needed.observation.nodes[0]
    both = replace(needed.observation, nodes=(node, replace(node, name="n2")))
    quiet = with_application(replace(needed, observation=both), backlog=0.0)
    assert decided(quiet, policy).target.nodes == (3 if policy == "ds2" else 2)
