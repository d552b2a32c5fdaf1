"""What the base does for every policy: hold on what is missing, keep wishes within the bounds, say so."""

from dataclasses import dataclass, replace

from rheostat.model.configuration import Bounds
from rheostat.model.decision import Proposal
from rheostat.policies.base import Info, Memory, Policy, Situation, wish
from rheostat.policies.example import situation
from rheostat.policies.static import Static

from .situations import with_application


@dataclass(frozen=True)
class Wishful(Policy):
    """Wishes for the same number of instances of every operator."""

    count: int = 3
    info = Info("wishful", "operators", "static", "a test")

    def propose(self, situation: Situation, memory: Memory) -> tuple[Proposal, Memory]:
        return wish(situation, dict.fromkeys(situation.topology.names, self.count), "three wishes"), {
            "asked": 1
        }


def test_a_wish_brings_the_nodes_it_needs_and_says_what_it_should_bring() -> None:
    proposal, memory = Wishful().decide(situation(load=3_000), {})
    assert proposal.target.nodes == proposal.target.executors == 5  # nine instances, two slots per node
    assert proposal.expected == {"highest utilisation": 0.5}
    assert memory == {"asked": 1}


def test_a_wish_that_changes_nothing_says_that_nothing_is_left_to_change() -> None:
    proposal, _ = Wishful(count=1).decide(situation(), {})
    assert proposal.reason == "hold: nothing left to change: three wishes"


def test_a_wish_beyond_the_bounds_is_cut() -> None:
    proposal, _ = Wishful(count=500).decide(situation(bounds=Bounds(1, 7)), {})
    assert proposal.target.parallelism == {"lines": 64, "split": 64, "count": 64}
    assert proposal.target.nodes == 7


def test_a_configuration_outside_the_bounds_is_brought_within_them_and_the_reason_says_so() -> None:
    seen = situation(nodes=6, bounds=Bounds(1, 4))
    proposal, _ = Static().decide(seen, {})
    assert proposal.target.nodes == proposal.target.executors == 4
    assert proposal.reason == "static: the configuration is fixed; brought within the bounds"


def test_a_policy_is_not_asked_when_something_was_not_measured() -> None:
    unknown = with_application(situation(), load={"lines": None})
    proposal, memory = Wishful().decide(unknown, {"kept": 1})
    assert proposal.target == unknown.configuration
    assert proposal.reason == "hold: not measured in this window: load of lines"
    assert memory == {"kept": 1}


def test_nothing_shrinks_on_a_window_in_which_no_batch_ended() -> None:
    small, large = with_application(situation(), stale=True), situation(parallelism=(4, 4, 4), nodes=6)
    grown, _ = Wishful().decide(small, {})
    assert grown.target.nodes == 5
    held, _ = Wishful().decide(with_application(large, stale=True), {"kept": 1})
    assert (held.target, held.reason[:30]) == (large.configuration, "hold: no batch ended in this w")
    assert Wishful().decide(large, {})[0].target.nodes == 5
    mixed = situation(parallelism=(1, 4, 1), nodes=3)
    part, _ = Wishful().decide(with_application(mixed, stale=True), {})
    assert part.target.parallelism == {"lines": 3, "split": 4, "count": 3}
    assert part.reason == "three wishes; no batch ended in this window, so nothing shrinks"


def test_chance_depends_on_seed_and_turn_alone() -> None:
    seen = situation()
    assert seen.chance(3).random() == situation(load=9).chance(3).random()
    assert seen.chance(3).random() != seen.chance(4).random()
    assert seen.chance(3).random() != replace(seen, seed=1).chance(3).random()
