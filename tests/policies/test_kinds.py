"""What a policy may ask about nodes of several kinds."""

from dataclasses import replace

import pytest

from rheostat.analyze.execution import Staged
from rheostat.model.configuration import NodeKind
from rheostat.policies.base import Situation, wish
from rheostat.policies.example import situation

SMALL = NodeKind("small", cores=2.0, slots=2)
LARGE = NodeKind("large", cores=4.0, slots=8, executors=4)


def mixed() -> Situation:
    """A large node, the oldest, and a small one."""
    now = situation(load=1_000, parallelism=(1, 5, 1), nodes=2)
    large, small = now.observation.nodes
    nodes = (replace(large, kind="large", slots=8, cores=4.0, executors=4), small)
    return replace(
        now,
        observation=replace(now.observation, nodes=nodes),
        configuration=replace(now.configuration, executors=5),
        kinds=(SMALL, LARGE),
    )


def test_slots_and_executors_are_those_of_the_oldest_nodes_and_of_more_of_the_default_kind() -> None:
    seen = mixed()
    assert [seen.slots_on(nodes) for nodes in (1, 2, 3)] == [8, 10, 12]
    assert [seen.executors_on(nodes) for nodes in (1, 2, 3)] == [4, 5, 6]


def test_the_fewest_nodes_are_counted_from_the_oldest_on() -> None:
    seen = mixed()
    counts = {
        slots: seen.nodes_for({"lines": 1, "split": slots - 2, "count": 1}) for slots in (3, 8, 9, 11, 14)
    }
    assert counts == {3: 1, 8: 1, 9: 2, 11: 3, 14: 4}


def test_an_instance_counts_on_what_a_slot_offers_on_average_where_slots_share_cores() -> None:
    assert replace(mixed(), model=Staged()).instance_cores == pytest.approx((4 + 2) / (8 + 2))
    assert mixed().instance_cores == 1.0  # in Real-Time Mode on a core, as every node has one


def test_as_many_nodes_are_needed_as_have_the_cores() -> None:
    seen = mixed()
    one_each = {"lines": 1, "split": 1, "count": 1}
    counts = {cores: seen.nodes_for(one_each, cores) for cores in (4.0, 4.1, 6.0, 6.1)}
    assert counts == {4.0: 1, 4.1: 2, 6.0: 2, 6.1: 3}


def test_a_wish_counts_the_executors_of_the_nodes_that_stay() -> None:
    target = wish(mixed(), {"lines": 1, "split": 4, "count": 1}, "a test wants it").target
    assert (target.nodes, target.executors) == (1, 4)
