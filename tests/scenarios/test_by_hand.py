"""Plans by hand on a scripted cluster: through the control API, past the guards, into the journal."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rheostat.control.guards import Guards
from rheostat.journal.explanation import explain
from rheostat.journal.store import Journal
from rheostat.run.composition import Running
from rheostat.run.control_api import serving
from rheostat.run.control_client import propose
from rheostat.run.control_messages import PlanAnswer, PlanRequest
from tests.scripted.world import World

from .test_resume import Wishes, controller


@contextmanager
def run(world: World, guards: Guards | None = None) -> Iterator[Running]:
    """A run in a world, with its control API."""
    running = controller(world, Wishes(), guards=guards)
    try:
        with serving(world.folder, running.loop.requests):
            yield running
    finally:
        running.journal.close()


def ask(running: Running, preview: bool = False, **parallelism: int) -> PlanAnswer:
    """Propose a plan from another thread, and control until it is answered."""
    answers: list[PlanAnswer] = []
    request = PlanRequest(parallelism, "a test", "ann@desk")
    client = threading.Thread(
        target=lambda: answers.append(propose(running.order.folder, request, preview=preview))
    )
    client.start()
    while running.loop.requests.look() is None:
        assert client.is_alive()
    next(running.turns(running.clock.now() + 60))
    client.join(10)
    return answers[0]


@pytest.mark.parametrize("mode", ["microbatch", "realtime"])
def test_a_plan_by_hand_gets_the_nodes_that_it_needs(mode: str, tmp_path: Path) -> None:
    world = World(tmp_path, mode=mode, state=1 if mode == "realtime" else 2)
    with run(world) as running:
        answer = ask(running, key=6)
        assert answer.status == "applied", answer
        assert answer.parallelism["key"] == 6
        assert len(running.engine.provider.nodes()) == (2 if mode == "realtime" else 1)
        assert any("every instance holds a slot" in veto for veto in answer.vetoes) == (mode == "realtime")
        assert world.deaths == []
        assert world.parallelism["key"] == 6
        told = explain(running.journal, answer.number, now=0.0)
    assert told.decision is not None and told.decision.plan.asked_by == "ann@desk"
    with Journal.read(tmp_path / "journal.sqlite") as journal:
        kept = journal.turn(answer.number or 0)
    assert kept is not None and kept.plan.reason == "ann@desk asked by hand: a test"


def test_a_plan_beyond_the_bounds_is_cut_or_refused_and_says_why(tmp_path: Path) -> None:
    world = World(tmp_path, mode="realtime", state=1)
    with run(world) as running:
        before = running.engine.configuration
        answer = ask(running, key=16)
        assert answer.status == "unchanged"
        assert answer.vetoes == ["18 instances need 5 nodes, the limit is 3"]
        assert running.engine.configuration == before
        answer = ask(running, key=40)
        assert answer.vetoes[0] == "brought within the bounds: key 40 -> 16"
        assert running.engine.configuration == before


def test_a_plan_by_hand_waits_for_no_cool_down_but_is_vetoed_by_it(tmp_path: Path) -> None:
    world = World(tmp_path)
    with run(world, Guards(cooldown_seconds=60)) as running:
        assert ask(running, key=3).status == "applied"
        second = ask(running, key=4)
        assert (second.status, second.parallelism["key"]) == ("unchanged", 3)
        assert second.vetoes[0].startswith("cool-down: the last change was")


def test_a_preview_changes_nothing_and_is_not_in_the_journal(tmp_path: Path) -> None:
    world = World(tmp_path)
    with run(world) as running:
        next(running.turns())
        world.asked.clear()
        answer = ask(running, preview=True, key=3)
        assert (answer.status, answer.change, answer.parallelism["key"]) == ("preview", "key 4 -> 3", 3)
        assert world.asked == []
        assert [turn.plan.asked_by for turn in running.journal.turns()] == [None, None]


def test_a_change_that_fails_is_answered_as_failed(tmp_path: Path) -> None:
    world = World(tmp_path, mode="realtime", state=1)
    with run(world) as running:
        world.refuses_nodes = "no machine left"
        answer = ask(running, key=6)
        assert answer.status == "failed"
        assert "no machine left" in answer.outcome
        assert answer.parallelism["key"] != 6
