"""What an engine may rely on, whichever provider gives it nodes."""

import pytest

from rheostat.model.configuration import NodeKind
from rheostat.model.errors import RheostatError
from rheostat.providers.simulated import SimulatedProvider

KIND = NodeKind("small", startup_seconds=45)


def test_a_node_is_paid_for_at_once_and_ready_after_its_start_up_time() -> None:
    provider = SimulatedProvider(lambda: 100.0)
    node = provider.add(KIND)
    assert provider.nodes() == (node,)
    assert (node.ordered_at, node.ready_at) == (100.0, 145.0)


def test_nodes_are_listed_oldest_first_and_names_are_never_used_twice() -> None:
    provider = SimulatedProvider(lambda: 0.0, regions=("east", "west"))
    first, second = provider.add(KIND, "west"), provider.add(KIND)
    provider.remove(first.name)
    third = provider.add(KIND, "west")
    assert [node.name for node in provider.nodes()] == [second.name, third.name]
    assert third.name != first.name
    assert (second.region, third.region) == ("east", "west")


def test_an_unknown_region_or_node_is_refused_with_its_name() -> None:
    provider = SimulatedProvider(lambda: 0.0)
    with pytest.raises(RheostatError, match="mars"):
        provider.add(KIND, "mars")
    with pytest.raises(RheostatError, match="n9"):
        provider.remove("n9")
