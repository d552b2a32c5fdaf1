"""Overloaded nodes get help from every policy that scales, whether or not it could be asked."""

from dataclasses import replace
from typing import Any

import pytest

from rheostat.analyze.execution import ExecutionModel, FixedTasks, Pipelined, Staged, Storm
from rheostat.model.configuration import Bounds
from rheostat.model.decision import Placement, Proposal
from rheostat.policies.base import Info, Memory, Policy, Situation, hold, wish
from rheostat.policies.example import WORDS, situation
from rheostat.policies.registry import available, build

from .situations import with_application, with_limits, with_nodes, with_operator

SCALING = sorted(set(available()) - {"static"})
TASKS = dict.fromkeys(WORDS.names, 200)
FIXED = FixedTasks(3, 0.1, TASKS, node_slots=2)
MODELS = (Pipelined(), Staged(3), Storm(), FIXED)
LATE = {"trigger_seconds": 3.0, "running_seconds": 31.0, "tasks_done": 12, "tasks_left": 188}
WORDS_OF_IT = (
    "nodes are above 0.9 CPU and the running batch has taken 31 s of a 3 s trigger, 12 of 200 tasks done"
)


def of(model: ExecutionModel, nodes: int = 2, load: float = 50.0, **more: Any) -> Situation:
    """Some nodes with an instance or task in every slot; of 200 tasks, where none can change."""
    at_once = 2 * nodes
    counts = (at_once,) * 3 if model.takes_turns else (1, at_once - 2, 1)
    seen = situation(load, counts, nodes, model=model, **more)
    for name in WORDS.names if model.scales_nodes_only else ():
        seen = with_limits(seen, name, 1, 200)
    return seen


def overloaded(seen: Situation, late: int = 1, **nodes: Any) -> Situation:
    """The same with a running batch that is late on full nodes."""
    return with_nodes(with_application(seen, late_batches=late, **LATE), **{"cpu": 0.97, **nodes})


def unmeasured(seen: Situation) -> Situation:
    """The same before any batch has ended."""
    return with_application(seen, load={"lines": None})


def decided(spec: str, seen: Situation) -> Proposal:
    return build(spec).decide(seen, {})[0]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("spec", SCALING)
def test_overload_without_measures_brings_a_node_in_one_turn_and_says_why(
    spec: str, model: ExecutionModel
) -> None:
    seen = overloaded(unmeasured(of(model)))
    proposal = decided(spec, seen)
    assert (proposal.target.nodes, proposal.target.executors) == (3, 3)
    assert proposal.reason == f"{WORDS_OF_IT}: one more node"
    assert proposal.rejected == ("the policy alone: hold: not measured in this window: load of lines",)
    assert proposal.causes and all(cause.holds() for cause in proposal.causes)
    assert proposal.alert is None
    assert model.slots_required(proposal.target.parallelism) <= 6
    assert model.slots_for(proposal.target.parallelism) == 6  # every slot of the new node has work


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("spec", SCALING)
def test_no_policy_shrinks_while_overloaded_and_each_grows(spec: str, model: ExecutionModel) -> None:
    idle = of(model, nodes=4)  # by its measures
    seen, had = overloaded(idle), idle.configuration
    memory: Memory = {}
    policy = build(spec)
    for turn in range(4):
        proposal, memory = policy.decide(replace(seen, now=60.0 * (turn + 1)), memory)
        target = proposal.target
        assert target.nodes > had.nodes, proposal.reason
        assert all(target.parallelism[name] >= count for name, count in had.parallelism.items())
        assert not (proposal.placement.remove or proposal.placement.take)
        assert not proposal.placement.contradicts(had, target)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_static_policy_stays(model: ExecutionModel) -> None:
    for seen in (overloaded(of(model)), overloaded(unmeasured(of(model)))):
        proposal = decided("static", seen)
        assert not proposal.changes(seen.configuration)
        assert WORDS_OF_IT not in proposal.reason


@pytest.mark.parametrize("spec", SCALING)
def test_without_overload_missing_measures_hold_as_before(spec: str) -> None:
    seen = unmeasured(with_application(of(FIXED), late_batches=0))
    assert decided(spec, seen).reason == "hold: not measured in this window: load of lines"
    assert decided(spec, overloaded(seen, cpu=None)).target == seen.configuration
    assert decided(spec, overloaded(seen, cpu=0.8)).target == seen.configuration


@pytest.mark.parametrize("spec", SCALING)
def test_a_cold_start_holds_at_the_first_late_batch_and_adds_one_node_at_the_second(spec: str) -> None:
    start = unmeasured(of(FIXED))
    assert decided(spec, overloaded(start, late=1, compiling=0.5)).target == start.configuration
    assert decided(spec, overloaded(start, late=2, compiling=0.5)).target.nodes == 3


def test_a_batch_that_would_take_long_at_most_doubles_the_nodes() -> None:
    start = unmeasured(of(FIXED, nodes=4))
    assert decided("ds2", overloaded(start, late=1)).target.nodes == 5
    proposal = decided("ds2", overloaded(start, late=2))
    assert (proposal.target.nodes, proposal.reason) == (8, f"{WORDS_OF_IT}: 4 more nodes")
    half_more = {"running_seconds": 3.6, "tasks_done": 80, "tasks_left": 20}
    assert decided("ds2", with_application(overloaded(start, late=2), **half_more)).target.nodes == 6
    assert decided("ds2", overloaded(replace(start, bounds=Bounds(1, 7)), late=2)).target.nodes == 7


@pytest.mark.parametrize("spec", SCALING)
def test_at_the_node_limit_it_holds_and_says_what_to_do(spec: str) -> None:
    seen = overloaded(unmeasured(of(FIXED, bounds=Bounds(1, 2))))
    proposal = decided(spec, seen)
    assert proposal.target == seen.configuration
    assert proposal.reason == (
        f"hold: {WORDS_OF_IT}; as many nodes as the limit allows (2) are in use: "
        "allow more with --nodes, or larger ones with --node"
    )
    assert proposal.alert is not None and "--nodes" in proposal.alert


def test_above_the_node_limit_the_limit_comes_first() -> None:
    seen = overloaded(of(FIXED, nodes=6, load=9_000.0, bounds=Bounds(1, 4)))
    assert decided("ds2", seen).target.nodes == 4


def test_where_all_tasks_run_already_another_node_is_not_added() -> None:
    few = with_limits(unmeasured(of(FIXED)), "lines", 1, 4)
    for name in ("split", "count"):
        few = with_limits(few, name, 1, 4)
    proposal = decided("ds2", overloaded(few))
    assert proposal.target == few.configuration
    assert proposal.alert is not None and "more partitions" in proposal.alert
    alone = replace(few, model=FixedTasks(3, 0.1, dict.fromkeys(WORDS.names, 4), node_slots=2, alone=2.0))
    assert decided("ds2", overloaded(alone)).target.nodes == 3  # a task with a node to itself runs faster


def test_state_is_not_rewritten_for_relief_while_others_can_use_the_node() -> None:
    seen = overloaded(unmeasured(of(Staged(3))))
    stateful = _with_state(seen, "count")
    assert decided("ds2", stateful).target.parallelism == {"lines": 6, "split": 6, "count": 4}
    every = _with_state(seen, *WORDS.names)
    assert decided("ds2", every).target.parallelism == {"lines": 6, "split": 6, "count": 6}


def test_in_pipelined_mode_the_busiest_operator_gets_the_new_slots() -> None:
    seen = overloaded(with_operator(of(Pipelined()), "count", cpu_seconds=50.0))
    proposal, _ = Quiet().decide(seen, {})
    assert proposal.target.parallelism == {"lines": 1, "split": 2, "count": 3}


def holding(seen: Situation, megabytes: float, **more: Any) -> Situation:
    """The same with state that takes so much of the nodes' memory, 4096 MB each."""
    return with_application(seen, state_rows=5.0, state_memory_bytes=megabytes * 2**20, **more)


def test_full_memory_brings_a_node_where_state_fills_it_and_spreads() -> None:
    spreading = holding(unmeasured(of(FIXED)), 2_000.0)
    proposal = decided("multilevel", overloaded(spreading, late=2, cpu=0.3, memory=0.96))
    assert proposal.target.nodes == 3
    assert proposal.reason.startswith(
        "nodes are above 0.9 memory (state holds 2000 MB) and the running batch"
    )
    changeable = overloaded(holding(unmeasured(of(Staged(3))), 2_000.0), late=2, cpu=0.3, heap=0.96)
    assert decided("multilevel", changeable).target.nodes == 3


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_full_memory_of_which_state_holds_little_brings_no_node(model: ExecutionModel) -> None:
    for nodes in (2, 3):
        few = overloaded(holding(unmeasured(of(model, nodes)), 0.1), late=9, cpu=0.3, memory=0.95)
        proposal = decided("multilevel", few)
        assert proposal.target == few.configuration
        assert proposal.alert is not None and "would free no memory" in proposal.alert


def test_nodes_for_memory_end_where_they_do_not_relieve() -> None:
    def wanted(nodes: int) -> int:
        seen = overloaded(holding(unmeasured(of(FIXED, nodes)), 1_500.0), late=9, cpu=0.3, memory=0.95)
        return decided("multilevel", with_application(seen, running_seconds=None)).target.nodes

    assert wanted(1) == 2  # state holds 37 % of the memory
    assert wanted(2) == 2  # 18 %, and both are as full as the first was


def test_a_node_with_room_shows_that_another_would_stay_empty() -> None:
    seen = overloaded(holding(unmeasured(of(FIXED)), 4_000.0), late=9, cpu=0.3, memory=0.97)
    first, second = seen.observation.nodes
    newest = replace(seen.observation, nodes=(first, replace(second, memory=0.4)))
    assert decided("multilevel", seen).target.nodes > 2
    assert decided("multilevel", replace(seen, observation=newest)).target.nodes == 2


@pytest.mark.parametrize("spec", SCALING)
def test_full_memory_that_no_node_relieves_holds_with_an_alert_that_says_what_to_change(spec: str) -> None:
    stateless = with_application(unmeasured(of(FIXED)), state_rows=0.0)
    seen = overloaded(stateless, late=2, cpu=0.3, heap=0.96)
    proposal = decided(spec, seen)
    assert proposal.target == seen.configuration
    assert proposal.alert is not None
    for way_out in ("memory_mb", "maxOffsetsPerTrigger", "boundedMemoryUsage"):
        assert way_out in proposal.alert
    both = decided(spec, overloaded(stateless, heap=0.96))  # its CPU is relieved
    assert (both.target.nodes, both.alert) == (3, proposal.alert)


@pytest.mark.parametrize(("tasks", "nodes"), [(4, 2), (8, 3)])
def test_state_whose_tasks_all_run_at_once_does_not_spread(tasks: int, nodes: int) -> None:
    pinned = dict.fromkeys(WORDS.names, tasks)
    seen = unmeasured(situation(50.0, (4, 4, 4), 2, model=Staged(3, pinned=pinned)))
    for name in WORDS.names:
        seen = with_limits(seen, name, tasks, tasks)
    stateful = holding(_with_state(seen, "count"), 4_000.0)
    assert decided("ds2", overloaded(stateful, late=2, cpu=0.3, memory=0.95)).target.nodes == nodes


class Quiet(Policy):
    """Is content with everything."""

    info = Info("quiet", "none", "reactive", "a test")

    def propose(self, situation: Situation, memory: Memory) -> tuple[Proposal, Memory]:
        return hold(situation, "all is well"), {"asked": 1}


class Swapping(Quiet):
    """Adds two nodes, gives back one by name, and lowers an operator."""

    def propose(self, situation: Situation, memory: Memory) -> tuple[Proposal, Memory]:
        places = Placement(add=(("small", "local"),) * 2, remove=("n1",))
        wanted = {**situation.configuration.parallelism, "split": 1}
        return wish(situation, wanted, "swap", nodes=3, placement=places), {}


class MoreInstances(Quiet):
    """Adds an instance where there is room."""

    def propose(self, situation: Situation, memory: Memory) -> tuple[Proposal, Memory]:
        wanted = {**situation.configuration.parallelism, "lines": 2}
        return wish(situation, wanted, "one more", nodes=2), {}


def test_a_policy_that_is_content_is_overruled_and_its_reason_is_kept() -> None:
    proposal, memory = Quiet().decide(overloaded(of(FIXED)), {})
    assert proposal.reason == f"{WORDS_OF_IT}: one more node"
    assert proposal.rejected == ("the policy alone: all is well",)
    assert memory == {"asked": 1}


def test_a_wish_that_grows_keeps_nothing_of_what_shrinks() -> None:
    proposal, _ = Swapping().decide(overloaded(of(Pipelined())), {})
    assert (proposal.target.nodes, proposal.target.parallelism["split"]) == (3, 2)
    assert proposal.placement == Placement()
    assert proposal.reason == f"swap; nothing shrinks, because {WORDS_OF_IT}"


def test_at_the_node_limit_a_policy_may_still_use_what_there_is() -> None:
    seen = situation(50.0, (1, 1, 1), 2, bounds=Bounds(1, 2))
    proposal, _ = MoreInstances().decide(overloaded(seen), {})
    assert proposal.target.parallelism == {"lines": 2, "split": 1, "count": 1}
    assert proposal.reason.startswith("one more; nodes are above 0.9 CPU and")


def _with_state(seen: Situation, *names: str) -> Situation:
    operators = tuple(
        replace(one, stateful=True) if one.name in names else one for one in seen.topology.operators
    )
    return replace(seen, topology=replace(seen.topology, operators=operators))
