"""An application of which no operator can change, a plain script often: every policy scales its nodes."""

import pytest

from rheostat.analyze.execution import FixedTasks
from rheostat.model.decision import Proposal
from rheostat.policies.base import Memory
from rheostat.policies.example import WORDS, situation
from rheostat.policies.registry import available, build

from .situations import with_limits

TASKS = dict.fromkeys(WORDS.names, 8)
FIXED = FixedTasks(10, 0.1, TASKS, node_slots=2)
SCALING = sorted(set(available()) - {"static", "e2df"})  # e2df moves single replicas, and there are none
TURNS = 10


def decide(spec: str, load: float, nodes: int) -> Proposal:
    """What it wishes for when it wishes for another size, within ten turns."""
    policy, at_once = build(spec), 2 * nodes
    memory: Memory = {}
    proposal = None
    for turn in range(TURNS):
        seen = situation(load, (at_once, at_once, at_once), nodes, now=60.0 * (turn + 1), model=FIXED)
        proposal, memory = policy.decide(seen, memory)
        if proposal.changes(seen.configuration):
            break
    assert proposal is not None
    return proposal


@pytest.mark.parametrize("spec", SCALING)
def test_too_much_load_brings_nodes_and_more_tasks_run_at_once(spec: str) -> None:
    target = decide(spec, load=6_000, nodes=1).target  # six slots' worth of work on two
    assert target.nodes > 1
    assert set(target.parallelism.values()) == {2 * target.nodes}


@pytest.mark.parametrize("spec", SCALING)
def test_little_load_gives_nodes_back(spec: str) -> None:
    target = decide(spec, load=100, nodes=4).target
    assert target.nodes < 4
    assert set(target.parallelism.values()) == {2 * target.nodes}


def test_a_policy_that_holds_keeps_nodes_for_which_there_are_no_tasks() -> None:
    few = with_limits(situation(1_000, (1, 2, 2), nodes=4, model=FIXED), "lines", 1, 1)
    for name in ("split", "count"):
        few = with_limits(few, name, 1, 2)
    proposal, _ = build("static").decide(few, {})
    assert proposal.target == few.configuration
    assert proposal.reason == "static: the configuration is fixed"
