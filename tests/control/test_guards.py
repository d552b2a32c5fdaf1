from dataclasses import replace

import pytest

from rheostat.analyze.execution import Staged, Storm
from rheostat.control.guards import Guards
from rheostat.model.configuration import Bounds, Configuration, NodeKind
from rheostat.model.decision import Cause, Placement, Plan, Proposal
from rheostat.model.topology import Topology
from rheostat.policies.base import Situation
from rheostat.policies.example import situation

NOW = 4000.0
CAUSE = Cause("utilisation", "split", 0.9, ">", 0.8)


def config(lines: int, split: int, count: int, nodes: int = 2) -> Configuration:
    return Configuration({"lines": lines, "split": split, "count": count}, nodes, nodes)


def check(
    target: Configuration,
    guards: Guards | None = None,
    *,
    seen: Situation | None = None,
    changed_at: tuple[float, ...] = (),
    placement: Placement = Placement(),
) -> Plan:
    """The example's situation: one instance each on two nodes of two slots, just measured, at 4,000 s."""
    proposal = Proposal(
        target, "because", (CAUSE,), ("staying",), {"highest utilisation": 0.5}, placement, "look out"
    )
    return (guards or Guards()).check(proposal, seen or situation(now=NOW), changed_at, 7)


def test_a_wish_that_breaks_no_rule_passes_with_all_it_says() -> None:
    plan = check(config(1, 2, 1))
    assert plan == Plan(
        number=7,
        decided_at=NOW,
        current=config(1, 1, 1),
        target=config(1, 2, 1),
        reason="because",
        causes=(CAUSE,),
        rejected=("staying",),
        expected={"highest utilisation": 0.5},
        alert="look out",
    )


def test_no_change_needs_no_guard() -> None:
    strict = Guards(cooldown_seconds=1e9, changes_per_hour=1, stale_seconds=1e-9)
    late = replace(situation(now=NOW), now=NOW + 100)
    plan = check(config(1, 1, 1), strict, seen=late, changed_at=(NOW,))
    assert (plan.changes, plan.vetoes) == (False, ())


@pytest.mark.parametrize(("ago", "passes"), [(0.0, False), (59.0, False), (60.0, True), (500.0, True)])
def test_a_change_waits_for_the_cooldown(ago: float, passes: bool) -> None:
    plan = check(config(1, 2, 1), Guards(cooldown_seconds=60), changed_at=(10.0, NOW - ago))
    assert plan.changes is passes
    assert plan.target == (config(1, 2, 1) if passes else config(1, 1, 1))
    told = (f"cool-down: the last change was {ago:.0f} s ago, less than 60 s",)
    assert plan.vetoes == (() if passes else told)


def test_changes_per_hour_count_the_last_hour_only() -> None:
    guards = Guards(changes_per_hour=2)
    assert check(config(1, 2, 1), guards, changed_at=(NOW - 3600, NOW - 10)).changes
    plan = check(config(1, 2, 1), guards, changed_at=(NOW - 3599, NOW - 10))
    assert plan.vetoes == ("2 changes in the last hour, the limit is 2",)
    assert not plan.changes


def test_a_stale_window_decides_nothing() -> None:
    late = replace(situation(now=NOW), now=NOW + 31)
    plan = check(config(1, 2, 1), Guards(stale_seconds=30), seen=late)
    assert plan.vetoes == ("the newest window ended 31 s ago, more than 30 s",)
    assert plan.target == plan.current
    assert check(config(1, 2, 1), Guards(stale_seconds=31), seen=late).changes


def test_a_refused_plan_keeps_its_reason_and_moves_nothing() -> None:
    wishes = Placement((("split", "n1"),), (("count", "n2"),), (("small", "local"),), ("n1",), ("n2",), True)
    plan = check(config(1, 2, 1), Guards(cooldown_seconds=60), changed_at=(NOW,), placement=wishes)
    assert plan.placement == Placement(hide=("n2",), keep=True)
    assert (plan.reason, plan.causes, plan.alert) == ("because", (CAUSE,), "look out")


def test_switched_off_guards_let_everything_pass() -> None:
    late = replace(situation(now=NOW), now=NOW + 1e6)
    assert check(config(1, 2, 1), seen=late, changed_at=(NOW + 1e6,) * 100).changes


def test_nodes_are_added_where_every_instance_holds_a_slot() -> None:
    plan = check(config(1, 3, 1, nodes=2))
    assert plan.target == config(1, 3, 1, nodes=3)
    assert plan.vetoes == ("nodes raised to 3: every instance holds a slot",)


def test_instances_that_can_never_have_a_slot_are_refused() -> None:
    small = situation(now=NOW, bounds=Bounds(1, 2))
    plan = check(config(1, 3, 1, nodes=2), seen=small)
    assert plan.vetoes == ("5 instances need 3 nodes, the limit is 2",)
    assert not plan.changes
    assert plan.target == plan.current


@pytest.mark.parametrize("model", [Storm(), Staged()])
def test_instances_may_outnumber_the_slots_where_they_share_them(model: Storm | Staged) -> None:
    plan = check(config(1, 9, 1), seen=situation(now=NOW, model=model))
    assert (plan.target, plan.vetoes) == (config(1, 9, 1), ())


def test_a_target_outside_the_bounds_is_brought_within_them() -> None:
    plan = check(config(1, 500, 0, nodes=30), seen=situation(now=NOW, model=Storm(), bounds=Bounds(1, 20)))
    assert plan.target == config(1, 64, 1, nodes=20)
    assert plan.vetoes == (
        "brought within the bounds: split 500 -> 64, count 0 -> 1, executors 30 -> 20, nodes 30 -> 20",
    )


def test_a_target_that_is_no_change_within_the_bounds_is_none() -> None:
    plan = check(config(1, 1, 0), seen=situation(now=NOW, bounds=Bounds(1, 2)))
    assert plan.target == plan.current
    assert not plan.changes
    assert plan.vetoes


@pytest.mark.parametrize(
    ("places", "bounds", "left"),
    [
        (Placement(add=(("small", "local"),) * 2), Bounds(1, 3), 4),
        (Placement(remove=("n1",)), Bounds(2, 3), 1),
    ],
)
def test_single_nodes_are_not_added_or_removed_beyond_the_bounds(
    places: Placement, bounds: Bounds, left: int
) -> None:
    seen = situation(now=NOW, model=Storm(), bounds=bounds)
    plan = check(config(1, 1, 1, nodes=left), seen=seen, placement=places)
    assert plan.vetoes == (
        f"{left} nodes after this change, the bounds are {bounds.min_nodes} to {bounds.max_nodes}",
    )
    assert not plan.changes
    assert plan.placement == Placement()


def test_a_run_above_its_limit_may_shrink_towards_it_node_by_node() -> None:
    seen = situation(now=NOW, nodes=4, model=Storm(), bounds=Bounds(1, 2))
    plan = check(config(1, 1, 1, nodes=3), seen=seen, placement=Placement(remove=("n4",)))
    assert (plan.changes, plan.vetoes, plan.target.nodes) == (True, (), 3)


def test_a_node_may_be_exchanged_at_the_limit() -> None:
    places = Placement(add=(("small", "local"),), remove=("n1",))
    seen = situation(now=NOW, model=Storm(), bounds=Bounds(2, 2))
    plan = check(config(1, 1, 1), seen=seen, placement=places)
    assert (plan.changes, plan.vetoes, plan.placement) == (True, (), places)


def test_a_plan_cannot_contradict_its_own_placement() -> None:
    with pytest.raises(ValueError, match="the placement leads to 1 nodes, the target has 2"):
        Plan(1, NOW, config(1, 1, 1), config(1, 2, 1), "because", placement=Placement(remove=("n1",)))


def test_a_proposal_whose_nodes_do_not_add_up_to_its_target_is_held() -> None:
    plan = check(config(1, 2, 1, nodes=2), placement=Placement(remove=("n1",)))
    assert plan.vetoes == ("the proposal wants 2 nodes, but the nodes it names lead to 1",)
    assert (plan.changes, plan.target, plan.placement) == (False, plan.current, Placement())
    assert plan.wished == config(1, 2, 1, nodes=2)


def test_a_node_that_its_instances_need_is_not_removed() -> None:
    plan = check(config(1, 2, 1, nodes=1), placement=Placement(remove=("n1",)))
    assert plan.target == config(1, 2, 1, nodes=2)
    assert plan.placement.remove == ()
    assert plan.vetoes == ("nodes raised to 2: every instance holds a slot",)


def test_nodes_that_are_exchanged_and_too_few_get_another() -> None:
    places = Placement(add=(("small", "local"),), remove=("n1",))
    plan = check(config(1, 5, 1, nodes=2), placement=places)
    assert plan.target.nodes == 4
    assert plan.placement == Placement(add=(("small", "local"),) * 2)


@pytest.mark.parametrize(
    ("places", "nodes", "why"),
    [
        (Placement(remove=("n1", "n1")), 1, ""),  # twice is once
        (Placement(remove=("n1", "n1")), 0, "lead to 1"),
        (Placement(remove=("zz",)), 1, "removes a node 'zz', which does not exist"),
        (Placement(add=(("huge", "local"),)), 3, "adds a node of kind 'huge', which does not exist"),
    ],
)
def test_a_proposal_that_names_nodes_which_cannot_be_is_held(places: Placement, nodes: int, why: str) -> None:
    plan = check(config(1, 1, 1, nodes=nodes), placement=places)
    assert plan.changes == (not why)
    assert why in "".join(plan.vetoes)


def test_a_veto_says_what_the_policy_had_wished() -> None:
    refused = check(config(1, 2, 1), Guards(cooldown_seconds=60), changed_at=(NOW,))
    assert (refused.wished, refused.target) == (config(1, 2, 1), config(1, 1, 1))
    assert check(config(1, 2, 1)).wished is None


@pytest.mark.parametrize(("cooldown", "remembered"), [(0.0, 3600.0), (60.0, 3600.0), (7200.0, 7200.0)])
def test_changes_matter_for_an_hour_or_the_cooldown(cooldown: float, remembered: float) -> None:
    assert Guards(cooldown_seconds=cooldown).memory_seconds == remembered


def with_state(load: float) -> Situation:
    seen = situation(now=NOW, load=load)
    operators = tuple(replace(o, stateful=o.name == "count") for o in seen.topology.operators)
    return replace(seen, topology=Topology("words", operators, seen.topology.streams))


def test_state_is_not_rewritten_where_the_rest_of_the_plan_will_do() -> None:
    guards, seen = Guards(rescale_above=0.9), with_state(load=500)
    plan = check(config(1, 2, 2), guards, seen=seen)
    assert plan.target == config(1, 2, 1)
    assert plan.vetoes[0].startswith("count unchanged: rewriting state pauses the stream")
    assert plan.changes
    assert not check(config(1, 1, 2), guards, seen=seen).changes


def test_state_is_rewritten_when_nothing_else_will_do() -> None:
    guards, seen = Guards(rescale_above=0.9), with_state(load=60_000)
    assert check(config(1, 1, 2), guards, seen=seen).target == config(1, 1, 2)
    assert check(config(1, 1, 2), seen=with_state(load=500)).target == config(1, 1, 2)  # and by default


def test_nodes_that_are_raised_for_slots_count_the_slots_of_the_kinds_that_are_there() -> None:
    small, large = NodeKind("small", cores=2, slots=2), NodeKind("large", cores=8, slots=8)
    seen = situation(now=NOW)
    nodes = (replace(seen.observation.nodes[0], kind="large", slots=8, cores=8.0), seen.observation.nodes[1])
    seen = replace(seen, kinds=(small, large), observation=replace(seen.observation, nodes=nodes))
    plan = check(config(1, 8, 1), seen=seen)
    assert (plan.target.nodes, plan.vetoes) == (2, ())
    plan = check(config(1, 10, 1), seen=seen)
    assert (plan.target.nodes, plan.vetoes) == (3, ("nodes raised to 3: every instance holds a slot",))
