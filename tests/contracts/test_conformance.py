"""The suite itself: each way to be of no use is found by the check that is there for it."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from rheostat.model.decision import Cause, Proposal
from rheostat.policies import conformance
from rheostat.policies.base import Info, Memory, Policy, Situation, hold, wish
from rheostat.policies.threshold import Threshold


@dataclass(frozen=True)
class Deaf(Policy):
    """Calls itself reactive and never moves."""

    info = Info("deaf", "none", "reactive", "these tests")

    def propose(self, situation: Situation, memory: Memory) -> tuple[Proposal, Memory]:
        return hold(situation, "all is well"), memory


@dataclass(frozen=True)
class Resting(Deaf):
    """Never moves, and says so."""

    info = Info("resting", "none", "static", "these tests")


@dataclass(frozen=True)
class OneStep(Threshold):
    """Takes one step and thinks that this must do."""

    def propose(self, situation: Situation, memory: Memory) -> tuple[Proposal, Memory]:
        if memory.get("done"):
            return hold(situation, "I did what I could"), memory
        return super().propose(situation, memory)[0], {"done": True}


@dataclass(frozen=True)
class Backwards(Threshold):
    """Takes a load that is too high for one that is too low."""

    def propose(self, situation: Situation, memory: Memory) -> tuple[Proposal, Memory]:
        wish, memory = super().propose(situation, memory)
        had = situation.configuration
        turned = {
            name: max(1, 2 * had.parallelism[name] - count) for name, count in wish.target.parallelism.items()
        }
        nodes = max(1, 2 * had.nodes - wish.target.nodes)
        return replace(wish, target=replace(wish.target, parallelism=turned, nodes=nodes)), memory


@dataclass(frozen=True)
class Hoarder(Threshold):
    """Grows, and keeps what it has."""

    low: float = 0.0


@dataclass(frozen=True)
class Miser(Threshold):
    """Goes down to one instance of each whenever no backlog is in sight."""

    def propose(self, situation: Situation, memory: Memory) -> tuple[Proposal, Memory]:
        if situation.observation.application.backlog:
            return super().propose(situation, memory)
        cause = Cause("backlog", situation.topology.name, 0.0, "<=", 0.0)
        smallest = dict.fromkeys(situation.topology.names, 1)
        return wish(situation, smallest, "nothing waits", nodes=1, causes=(cause,)), memory


@dataclass(frozen=True)
class Diarist(Threshold):
    """Remembers every turn."""

    def propose(self, situation: Situation, memory: Memory) -> tuple[Proposal, Memory]:
        proposal, _ = super().propose(situation, memory)
        return proposal, {"seen": [*memory.get("seen", []), situation.now]}


@pytest.mark.parametrize(
    ("policy", "check", "said"),
    [
        (Deaf(), conformance.grows_until_a_lasting_overload_is_served, "pipelined: after .* is 3.00"),
        (OneStep(), conformance.grows_until_a_lasting_overload_is_served, "the highest utilisation is 1.50"),
        (Backwards(), conformance.grows_until_a_lasting_overload_is_served, "the highest utilisation is"),
        (Deaf(), conformance.shrinks_when_there_is_little_to_do, "7 of 7 nodes are left"),
        (Hoarder(), conformance.shrinks_when_there_is_little_to_do, "7 of 7 nodes are left"),
        (Miser(), conformance.does_not_shrink_on_an_overload_that_is_half_measured, "nothing waits"),
        (Diarist(), conformance.memory_stays_bounded, "memory grows"),
    ],
    ids=lambda value: getattr(value, "__name__", type(value).__name__),
)
def test_a_policy_of_no_use_fails(policy: Policy, check: Callable[[Policy], None], said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        check(policy)


def test_only_a_policy_that_declares_itself_static_may_rest() -> None:
    conformance.check(Resting())
    with pytest.raises(AssertionError):
        conformance.check(Deaf())
