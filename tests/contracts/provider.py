"""What an engine may rely on, whichever provider gives it nodes: every adapter of the port passes this suite.

An adapter's test module imports everything of this one and has a fixture `site`. A provider that does not own
its nodes passes `Hosted`, one that does `Owned`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from rheostat.control.ports import Provider
from rheostat.model.configuration import NodeKind
from rheostat.model.errors import RheostatError

SMALL = NodeKind("small", cores=0.5, slots=2, memory_mb=512.0, startup_seconds=2.0, price_per_hour=0.1)
LARGE = NodeKind("large", cores=1.0, slots=4, executors=2, memory_mb=1024.0, startup_seconds=3.0)


@dataclass(frozen=True)
class Site:
    """A provider without nodes, and what the test may do to its world."""

    provider: Provider
    address: Callable[[str], tuple[str, str]]  # by which an executor on a node of this name would be known
    kill: Callable[[str], None] | None = None  # end a node as a fault does; None: its nodes never fail


class Owned:
    """Nodes that are ours to order and release."""

    def test_a_node_is_paid_for_when_it_is_ordered_and_is_ready_after_the_wait(self, site: Site) -> None:
        provider = site.provider
        assert provider.owned and not provider.decides and provider.nodes() == ()
        ordered = provider.order(SMALL, "")
        (node,) = provider.nodes()
        assert (node.name, node.kind, node.region) == (ordered.name, SMALL, provider.regions[0])
        provider.wait([node.name])
        assert provider.nodes()[0].ready_at is not None

    def test_nodes_of_several_kinds_stand_side_by_side_the_oldest_first(self, site: Site) -> None:
        provider = site.provider
        assert provider.kinds == (SMALL, LARGE)
        names = [provider.order(kind, "").name for kind in (LARGE, SMALL, LARGE)]
        provider.wait(names)
        assert [(node.name, node.kind) for node in provider.nodes()] == list(
            zip(names, (LARGE, SMALL, LARGE), strict=True)
        )

    def test_a_node_is_in_the_region_that_was_asked_for(self, site: Site) -> None:
        provider = site.provider
        assert provider.order(SMALL, provider.regions[-1]).region == provider.regions[-1]
        with pytest.raises(RheostatError, match="mars"):
            provider.order(SMALL, "mars")
        assert len(provider.nodes()) == 1

    def test_a_node_that_was_released_is_gone_and_its_name_is_never_used_again(self, site: Site) -> None:
        provider = site.provider
        first, second = provider.order(SMALL, "").name, provider.order(SMALL, "").name
        provider.wait([first, second])
        provider.settle(first)
        provider.release(first)
        third = provider.order(SMALL, "").name
        assert [node.name for node in provider.nodes()] == [second, third]
        assert first not in (second, third)
        with pytest.raises(RheostatError, match=first):
            provider.release(first)
        assert provider.losses == 0

    def test_an_executor_is_on_the_node_whose_address_it_has(self, site: Site) -> None:
        provider = site.provider
        names = [provider.order(SMALL, "").name for _ in range(2)]
        provider.wait(names)
        assert [provider.node_of(*site.address(name)) for name in names] == names

    def test_what_a_node_used_is_not_known_or_only_grows(self, site: Site) -> None:
        provider = site.provider
        name = provider.order(SMALL, "").name
        provider.wait([name])
        before, after = provider.usage(name), provider.usage(name)
        if before is not None and after is not None:
            assert 0 <= before.cpu_seconds <= after.cpu_seconds
            assert after.memory_bytes >= 0

    def test_a_node_that_ends_by_itself_is_reported_once_and_no_longer_paid_for(self, site: Site) -> None:
        provider, kill = site.provider, site.kill
        names = [provider.order(SMALL, "").name for _ in range(2)]
        provider.wait(names)
        assert provider.refresh(names) == ()
        if kill is not None:
            kill(names[0])
            assert provider.refresh(names) == (names[0],)
            assert provider.refresh(names) == ()
            assert [node.name for node in provider.nodes()] == names[1:]
        assert provider.losses == (kill is not None)


class Hosted:
    """Nodes of somebody else: those count that host our executors."""

    def test_no_node_can_be_ordered(self, site: Site) -> None:
        assert not site.provider.owned
        with pytest.raises(RheostatError, match="order"):
            site.provider.order(SMALL, "")
        assert site.provider.nodes() == ()

    def test_nodes_come_and_go_with_the_executors_that_they_host(self, site: Site) -> None:
        provider = site.provider
        one, two = (provider.node_of(*site.address(name)) for name in ("n1", "n2"))
        assert one != two
        assert provider.refresh([two]) == ()
        assert [node.name for node in provider.nodes()] == [two]
        provider.refresh([one, two])
        assert [node.name for node in provider.nodes()] in ([one, two], [two, one])
        assert {node.kind for node in provider.nodes()} == {SMALL}
        provider.refresh([one])
        assert [node.name for node in provider.nodes()] == [one]

    def test_a_release_ends_nothing(self, site: Site) -> None:
        provider = site.provider
        name = provider.node_of(*site.address("n1"))
        provider.refresh([name])
        provider.release(name)
        provider.refresh([name])
        assert [node.name for node in provider.nodes()] == [name]
        assert provider.losses == 0
