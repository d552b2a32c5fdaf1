"""P1, section 4: Operator and Application Manager, Region and Infrastructure Manager, by hand."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from rheostat.analyze.evaluation import evaluate
from rheostat.analyze.execution import Pipelined, Staged
from rheostat.model.configuration import Bounds, Configuration, NodeKind
from rheostat.model.decision import Proposal
from rheostat.model.observation import (
    ApplicationMeasures,
    InstanceMeasures,
    NodeMeasures,
    Observation,
    OperatorMeasures,
)
from rheostat.model.topology import Operator, Stream, Topology
from rheostat.policies.base import Situation, Start
from rheostat.policies.e2df import E2df
from rheostat.policies.example import situation

from .situations import with_nodes, with_operator

LINE = Topology(
    "line",
    (Operator("a", 0.001), Operator("b", 0.001), Operator("c", 0.001)),
    (Stream("a", "b"), Stream("b", "c")),
)
SMALL, LARGE = NodeKind("small", cores=2, slots=2), NodeKind("large", cores=8, slots=8)
Replicas = list[tuple[str, float]]  # (node, utilisation)


def node(name: str, cpu: float | None = 0.5, **parts: Any) -> NodeMeasures:
    return NodeMeasures(name, **{"slots": 2, "cores": 2.0, "cpu": cpu, **parts})


def world(
    replicas: Mapping[str, Replicas],
    nodes: list[NodeMeasures],
    *,
    now: float = 60.0,
    bounds: Bounds = Bounds(1, 50),
    kinds: tuple[NodeKind, ...] = (SMALL,),
    seed: int = 0,
) -> Situation:
    """Operators a, b and c; one that is not stated has one replica, 60 % busy, on the first node."""
    placed = {name: replicas.get(name, [(nodes[0].name, 0.6)]) for name in LINE.names}
    operators = {
        name: OperatorMeasures(
            parallelism=len(here),
            received=6_000,
            processed=6_000,
            cpu_seconds=6.0,
            instances=tuple(InstanceMeasures(at, utilisation=used) for at, used in here),
        )
        for name, here in placed.items()
    }
    hosts = [
        replace(
            one,
            instances={
                name: count
                for name, here in placed.items()
                if (count := sum(at == one.name for at, _ in here))
            },
        )
        for one in nodes
    ]
    observation = Observation(now - 30, now, operators, tuple(hosts), ApplicationMeasures({"a": 100.0}))
    counts = {name: len(here) for name, here in placed.items()}
    return Situation(
        now=now,
        topology=LINE,
        configuration=Configuration(counts, len(nodes), len(nodes)),
        observation=observation,
        evaluation=evaluate(LINE, observation, Pipelined(), kinds[0]),
        model=Pipelined(),
        kinds=kinds,
        bounds=bounds,
        seed=seed,
    )


def decided(seen: Situation, policy: E2df, memory: Mapping[str, Any] | None = None) -> Proposal:
    return turn(seen, policy, memory or {})[0]


def turn(seen: Situation, policy: E2df, memory: Mapping[str, Any]) -> tuple[Proposal, Mapping[str, Any]]:
    proposal, after = policy.decide(seen, memory)
    assert all(cause.holds() for cause in proposal.causes)
    assert json.loads(json.dumps(after)) == after
    return proposal, after


APPLICATION_ONLY = {"turn": 1}  # RM and IM rest every second time
FREE = E2df(C_r=0)
ROOM = [node("n1", slots=8, cores=8.0), node("n2", cpu=0.3), node("n3", cpu=0.2)]


def test_the_om_adds_a_replica_when_one_is_busier_than_the_threshold() -> None:
    at = decided(world({"b": [("n1", 0.7), ("n1", 0.6)]}, ROOM), FREE, APPLICATION_ONLY)
    assert at.target.parallelism["b"] == 2
    above = decided(world({"b": [("n1", 0.71), ("n1", 0.1)]}, ROOM), FREE, APPLICATION_ONLY)
    assert above.target.parallelism == {"a": 1, "b": 3, "c": 1}
    assert above.reason == "one more b: utilisation of busiest b 0.71 > 0.7"


def test_the_new_replica_goes_to_the_least_used_node() -> None:
    proposal = decided(world({"b": [("n1", 0.9)]}, ROOM), FREE, APPLICATION_ONLY)
    assert proposal.placement.put == (("b", "n3"),)
    assert proposal.placement.keep


def test_the_new_replica_stays_in_the_region_of_the_others() -> None:
    far = [*ROOM, node("far1", cpu=0.0, region="far"), node("far2", cpu=0.1, region="far")]
    near = decided(world({"b": [("n1", 0.9)]}, far), FREE, APPLICATION_ONLY)
    assert near.placement.put == (("b", "n3"),)
    away = decided(world({"b": [("far2", 0.9)]}, far), FREE, APPLICATION_ONLY)
    assert away.placement.put == (("b", "far1"),)


def test_a_full_or_hidden_node_takes_no_replica() -> None:
    nodes = [node("n1", slots=8, cores=8.0), node("n2", cpu=0.1, hidden=True), node("n3", cpu=0.2)]
    full = world({"b": [("n1", 0.9)], "c": [("n3", 0.6), ("n3", 0.6)]}, nodes)
    assert decided(full, FREE, APPLICATION_ONLY).placement.put == (("b", "n1"),)
    only = [node("n1", slots=3), node("n2", hidden=True)]
    nowhere = decided(world({"b": [("n1", 0.9)]}, only), FREE, APPLICATION_ONLY)
    assert nowhere.placement.put == ()
    assert nowhere.rejected == ("one more b: no free slot in its region",)


def test_the_om_removes_a_replica_when_the_rest_would_stay_well_below_the_threshold() -> None:
    # 0.75 x 0.7 = 0.525: two replicas of 0.26 sum to 0.52 on one; 0.27 to 0.54.
    fewer = decided(world({"b": [("n1", 0.26), ("n2", 0.26)]}, ROOM), FREE, APPLICATION_ONLY)
    assert fewer.target.parallelism["b"] == 1
    same = decided(world({"b": [("n1", 0.27), ("n2", 0.27)]}, ROOM), FREE, APPLICATION_ONLY)
    assert same.target.parallelism["b"] == 2
    # Exactly at the threshold nothing goes: 3 x 0.25 / 2 = 0.375 = 0.75 x 0.5.
    three = world({"b": [("n1", 0.25), ("n2", 0.25), ("n3", 0.25)]}, ROOM)
    assert decided(three, E2df(C_r=0, S_s_out=0.5), APPLICATION_ONLY).target.parallelism["b"] == 3
    assert decided(three, E2df(C_r=0, S_s_out=0.51), APPLICATION_ONLY).target.parallelism["b"] == 2


def test_the_last_replica_stays() -> None:
    assert decided(world({"b": [("n1", 0.0)]}, ROOM), FREE, APPLICATION_ONLY).target.parallelism["b"] == 1


def test_the_victim_is_drawn_from_the_two_busiest() -> None:
    replicas = {"b": [("n1", 0.01), ("n2", 0.3), ("n3", 0.2)]}
    drawn = {
        decided(world(replicas, ROOM, seed=seed), FREE, APPLICATION_ONLY).placement.take for seed in range(20)
    }
    assert drawn == {(("b", "n2"),), (("b", "n3"),)}
    again = [decided(world(replicas, ROOM, seed=7), FREE, APPLICATION_ONLY) for _ in range(2)]
    assert again[0] == again[1]


def test_the_am_rejects_a_claim_on_a_slot_that_another_operator_just_took() -> None:
    # n2 has one slot left and is the least used, so both claim it; a comes first in the topology.
    nodes = [node("n1", cpu=0.9, slots=8, cores=8.0), node("n2", cpu=0.1, slots=1)]
    proposal = decided(world({"a": [("n1", 0.9)], "b": [("n1", 0.9)]}, nodes), FREE, APPLICATION_ONLY)
    assert proposal.target.parallelism == {"a": 2, "b": 1, "c": 1}
    assert proposal.placement.put == (("a", "n2"),)
    assert proposal.rejected == ("one more b: n2 was just taken by another operator",)


def test_two_operators_may_share_a_node_with_two_free_slots() -> None:
    nodes = [node("n1", cpu=0.9, slots=8, cores=8.0), node("n2", cpu=0.1)]
    proposal = decided(world({"a": [("n1", 0.9)], "b": [("n1", 0.9)]}, nodes), FREE, APPLICATION_ONLY)
    assert proposal.placement.put == (("a", "n2"), ("b", "n2"))


def test_a_token_bucket_limits_reconfigurations_and_fills_with_time() -> None:
    policy, nodes = E2df(C_r=0, tokens_per_hour=2), [node("n1", slots=8, cores=8.0)]
    busy = {"a": [("n1", 0.9)], "b": [("n1", 0.9)], "c": [("n1", 0.9)]}
    first, memory = turn(world(busy, nodes, now=0), policy, APPLICATION_ONLY)
    assert first.target.parallelism == {"a": 2, "b": 2, "c": 1}
    assert first.rejected == ("one more c: no token left",)
    assert memory["tokens"] == 0
    early, _ = turn(world(busy, nodes, now=1_790), policy, {**memory, "turn": 1})
    assert early.placement.put == ()
    later, memory = turn(world(busy, nodes, now=1_800), policy, {**memory, "turn": 1})
    assert len(later.placement.put) == 1
    _, memory = turn(world({}, nodes, now=1e6), policy, {**memory, "turn": 1})
    assert memory["tokens"] == 2  # no more than an hour's


def test_a_bucket_of_less_than_one_token_an_hour_still_gives_one_now_and_then() -> None:
    policy = E2df(C_r=0, tokens_per_hour=0.5)
    busy = world({"b": [("n1", 0.9)]}, ROOM, now=7_200)
    assert decided(busy, policy, {"turn": 1, "tokens": 0.0, "now": 0.0}).target.parallelism["b"] == 2
    assert decided(busy, policy, {"turn": 1, "tokens": 0.0, "now": 100.0}).target.parallelism["b"] == 1


def stages(load: float, parallelism: tuple[int, int, int], nodes: int) -> Situation:
    """Micro-batch tasks have no fixed place."""
    seen = situation(load=load, parallelism=parallelism, nodes=nodes, model=Staged())
    for name in seen.topology.names:
        seen = with_operator(seen, name, instances=())
    return with_nodes(seen, instances={})


def test_tokens_count_for_stages_too() -> None:
    seen = stages(1_900, (1, 1, 1), nodes=4)  # the batch takes 1.93 of the interval
    proposal = decided(seen, E2df(tokens_per_hour=2), APPLICATION_ONLY)
    assert proposal.target.parallelism == {"lines": 2, "split": 2, "count": 1}
    assert proposal.rejected == ("one more count: no token left",)


def test_the_rm_keeps_c_r_slots_free() -> None:
    # Three replicas on three nodes of two slots: three free.
    nodes = [node("n1"), node("n2"), node("n3")]
    replicas = {"a": [("n1", 0.6)], "b": [("n2", 0.6)], "c": [("n3", 0.6)]}
    assert decided(world(replicas, nodes), E2df(C_r=3)).placement.add == ()
    proposal = decided(world(replicas, nodes), E2df(C_r=4))
    assert proposal.placement.add == (("small", "local"),)
    assert proposal.target.nodes == 4
    assert proposal.reason == "1 nodes more: free slots of local 3 < 4"
    assert decided(world(replicas, nodes), E2df(C_r=8)).target.nodes == 6  # five missing, two per node


def test_the_rm_counts_what_the_am_granted_this_turn() -> None:
    nodes = [node("n1"), node("n2"), node("n3")]
    replicas = {"a": [("n1", 0.9)], "b": [("n2", 0.6)], "c": [("n3", 0.6)]}
    proposal = decided(world(replicas, nodes), E2df(C_r=3))
    assert proposal.target.parallelism["a"] == 2
    assert proposal.target.nodes == 4


def test_the_rm_adds_the_smallest_kind() -> None:
    seen = world({}, [node("n1", slots=8, cores=8.0, kind="large")], kinds=(LARGE, SMALL))
    proposal = decided(seen, E2df(C_r=8))  # five are free
    assert proposal.placement.add == (("small", "local"), ("small", "local"))


def test_the_rm_and_im_rest_every_second_turn() -> None:
    seen = world({}, [node("n1", slots=3)])
    assert decided(seen, E2df(), {"turn": 0}).placement.add
    assert decided(seen, E2df(), {"turn": 1}).placement.add == ()
    assert decided(seen, E2df(), {"turn": 2}).placement.add


def test_the_limit_of_nodes_holds() -> None:
    seen = world({}, [node("n1", slots=3)], bounds=Bounds(1, 2))
    assert decided(seen, E2df(C_r=5)).placement.add == (("small", "local"),)
    full = replace(seen, bounds=Bounds(1, 1))
    assert decided(full, E2df(C_r=5)).rejected == ("3 nodes more in local: the limit of nodes is reached",)


def test_empty_nodes_are_returned_youngest_first_while_c_r_stays_free() -> None:
    nodes = [node("n1", slots=4), node("n2", cpu=0.0), node("n3", cpu=0.0), node("n4", cpu=0.0)]
    seen = world({}, nodes)  # one free on n1, six on the empty ones
    assert decided(seen, E2df(C_r=6)).placement.remove == ()
    assert decided(seen, E2df(C_r=5)).placement.remove == ("n4",)
    assert decided(seen, E2df(C_r=3)).placement.remove == ("n4", "n3")
    both = decided(seen, E2df(C_r=1))
    assert both.placement.remove == ("n4", "n3", "n2")
    assert both.target.nodes == 1
    assert decided(replace(seen, bounds=Bounds(3, 9)), E2df(C_r=1)).placement.remove == ("n4",)


def test_a_node_that_just_got_a_replica_is_not_returned() -> None:
    nodes = [node("n1", slots=3), node("n2", cpu=0.1), node("n3", cpu=0.0)]
    proposal = decided(world({"b": [("n1", 0.9)]}, nodes), E2df(C_r=0))
    assert proposal.placement.put == (("b", "n3"),)
    assert proposal.placement.remove == ("n2",)


def test_every_region_keeps_its_own_slots_free() -> None:
    nodes = [node("n1", slots=8, cores=8.0), node("far", cpu=0.5, region="far")]
    seen = world({"c": [("far", 0.6)]}, nodes)  # six free here, one there
    assert decided(seen, E2df(C_r=5)).placement.add == (("small", "far"), ("small", "far"))
    wide = [*nodes, node("n2", cpu=0.0), node("far2", cpu=0.0, region="far")]
    proposal = decided(world({"c": [("far", 0.6)]}, wide), E2df(C_r=3))
    assert proposal.placement.remove == ("n2",)
    assert proposal.placement.add == ()  # three are free there, and its empty node is one of them


# Eight slots for three replicas; n2 is under-used and hosts c.
IDLE = [node("n1", cpu=0.5, slots=4), node("n2", cpu=0.1), node("n3", cpu=0.2)]
ON_IDLE: dict[str, Replicas] = {"a": [("n1", 0.6)], "b": [("n3", 0.6)], "c": [("n2", 0.6)]}


def test_the_im_hides_an_under_used_node_then_its_replicas_move_onto_occupied_nodes() -> None:
    policy = E2df(C_r=2)
    asked, memory = turn(world(ON_IDLE, IDLE, now=60), policy, {})
    assert asked.placement.hide == ("n2",)
    assert not asked.changes(world(ON_IDLE, IDLE).configuration)
    assert memory["asked"] == {"n2": [60, "asked"]}

    hidden = [IDLE[0], replace(IDLE[1], hidden=True), IDLE[2], node("n4", cpu=0.0)]
    between, memory = turn(world(ON_IDLE, hidden, now=90), policy, memory)
    assert between.placement.hide == ("n2",)
    assert between.placement.put == ()

    moved, memory = turn(world(ON_IDLE, hidden, now=120), policy, memory)
    assert moved.placement.take == (("c", "n2"),)
    assert moved.placement.put == (("c", "n3"),)  # the least used of those in use; n4 is empty
    assert moved.placement.remove == ("n4", "n2")
    assert moved.placement.hide == ()
    assert memory["asked"] == {}
    assert moved.target.parallelism == {"a": 1, "b": 1, "c": 1}


def test_a_node_is_asked_for_only_if_the_region_can_spare_it() -> None:
    # Five slots are free, three without n2: with C_r = 4 another node would have to come for it.
    assert decided(world(ON_IDLE, IDLE), E2df(C_r=3)).placement.hide == ("n2",)
    assert decided(world(ON_IDLE, IDLE), E2df(C_r=4)).placement.hide == ()
    all_idle = [replace(one, cpu=0.05) for one in IDLE]
    quiet = decided(world(ON_IDLE, all_idle), E2df(C_r=1))
    assert quiet.placement.hide == ("n1",)  # one after the other: the rest must take the replicas


def test_a_node_above_u_low_or_of_unknown_cpu_is_left_alone() -> None:
    for cpu in (0.11, None):
        nodes = [IDLE[0], replace(IDLE[1], cpu=cpu), IDLE[2]]
        assert decided(world(ON_IDLE, nodes), E2df(C_r=2)).placement.hide == ()


def test_the_hand_shake_is_cancelled_when_the_replicas_were_not_moved_in_time() -> None:
    policy = E2df(C_r=0, handshake_seconds=120)
    full = [node("n1", slots=2), node("n2", cpu=0.05, hidden=True)]
    stuck: dict[str, Replicas] = {"a": [("n1", 0.6)], "b": [("n1", 0.6)], "c": [("n2", 0.6)]}
    memory: Mapping[str, Any] = {"turn": 2, "asked": {"n2": [0, "asked"]}}
    waiting, _ = turn(world(stuck, full, now=119), policy, memory)
    assert waiting.placement.hide == ("n2",)
    given_up, memory = turn(world(stuck, full, now=120), policy, memory)
    assert given_up.placement.hide == ()
    assert given_up.rejected == ("emptying n2: its replicas were not moved in 120 s",)
    assert memory["asked"] == {"n2": [120, "cancelled"]}
    shown = [full[0], replace(full[1], hidden=False)]
    later, memory = turn(world(stuck, shown, now=180), policy, {**memory, "turn": 4})
    assert later.placement.hide == ()  # not asked again at once
    _, memory = turn(world(stuck, shown, now=240), policy, {**memory, "turn": 6})
    assert memory["asked"].get("n2", [0, "asked"])[1] == "asked"


def test_a_node_that_became_busy_is_shown_again() -> None:
    busy = [IDLE[0], replace(IDLE[1], cpu=0.4, hidden=True), IDLE[2]]
    proposal, memory = turn(world(ON_IDLE, busy), E2df(C_r=2), {"turn": 2, "asked": {"n2": [0, "asked"]}})
    assert proposal.placement.hide == ()
    assert proposal.placement.take == ()
    assert proposal.rejected == ("emptying n2: it is not under-used any more",)
    assert memory["asked"] == {}


def test_a_replica_that_ends_this_turn_is_not_moved_too() -> None:
    nodes = [node("n1", slots=4), node("n2", cpu=0.05, hidden=True), node("n3", cpu=0.5)]
    shrinking: dict[str, Replicas] = {"c": [("n2", 0.2), ("n2", 0.2)], "b": [("n3", 0.6)]}
    memory = {"turn": 2, "asked": {"n2": [0, "asked"]}}
    proposal = decided(world(shrinking, nodes), E2df(C_r=0), memory)
    assert proposal.target.parallelism["c"] == 1
    assert proposal.placement.take == (("c", "n2"), ("c", "n2"))
    assert len(proposal.placement.put) == 1


def test_a_node_that_is_gone_is_forgotten() -> None:
    _, memory = turn(world({}, ROOM), FREE, {"turn": 2, "asked": {"gone": [0, "asked"]}})
    assert "gone" not in memory["asked"]


def test_it_starts_with_one_replica_of_each_on_r_init_nodes() -> None:
    start = Start(LINE, Pipelined(), (SMALL,), Bounds(1, 50), first_load=900, peak_load=900)
    first = E2df().initial(start)
    assert (dict(first.parallelism), first.nodes) == ({"a": 1, "b": 1, "c": 1}, 5)
    assert E2df(R_init=1).initial(start).nodes == 2  # three instances need two nodes
    assert E2df().initial(replace(start, bounds=Bounds(1, 3))).nodes == 3


def test_stages_grow_only_up_to_the_slots() -> None:
    proposal = decided(stages(8_000, (4, 3, 4), nodes=2), E2df(), APPLICATION_ONLY)
    assert proposal.target.parallelism == {"lines": 4, "split": 4, "count": 4}
    assert proposal.rejected == ("one more lines: no free slot", "one more count: no free slot")


def test_parameters_are_checked() -> None:
    for wrong in ({"S_s_out": 1.5}, {"c": 1.0}, {"C_r": -1}, {"R_init": 0}, {"tokens_per_hour": -1.0}):
        with pytest.raises(ValueError, match="must be"):
            E2df(**wrong)


def test_a_node_of_which_nobody_knows_what_it_runs_is_not_returned() -> None:
    spare = situation(load=100, nodes=6)
    assert E2df().decide(spare, {})[0].placement.remove  # nodes without an instance
    unknown = with_nodes(spare, instances=None)
    proposal, _ = E2df().decide(unknown, {})
    assert (proposal.placement.remove, proposal.target.nodes) == ((), 6)


def test_in_micro_batch_no_replica_is_moved_from_a_node_that_is_hardly_used() -> None:
    idle = with_nodes(situation(load=1, nodes=9, model=Staged()), cpu=0.01, instances={"split": 1})
    memory: Mapping[str, Any] = {}
    for _ in range(6):
        proposal, memory = E2df(C_r=1).decide(idle, memory)
        assert (proposal.placement.put, proposal.placement.take) == ((), ())
