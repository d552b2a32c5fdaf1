"""Journals for the tests of what reads them."""

from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from rheostat.control.guards import Guards
from rheostat.control.loop import Loop
from rheostat.control.turn import Decision, Turn
from rheostat.journal.store import Journal
from rheostat.model.configuration import Bounds
from rheostat.model.observation import Event
from rheostat.policies.base import Policy
from tests.control.fakes import FakeClock, FakeEngine, Sometimes

FACTS = {"topology": "words", "policy": "sometimes", "mode": "pipelined", "seed": 0}


def turns(
    count: int, policy: Policy | None = None, guards: Guards | None = None, **engine: Any
) -> list[Turn]:
    """Make so many turns, one a minute; every tenth changes something unless a policy decides otherwise."""
    fake = FakeEngine(FakeClock(), **engine)
    loop = Loop(fake, fake.clock, policy or Sometimes(), Bounds(1, 20), guards or Guards())
    return list(islice(loop.run(until=1e9), count))


def write(path: Path, written: list[Turn], *notes: Event, **facts: Any) -> Path:
    """Write a journal of turns and events."""
    with Journal(path) as journal:
        journal.describe({**FACTS, **facts})
        for turn in written:
            journal.done(turn)
        for event in notes:
            journal.note(event)
    return path


def with_alert(turn: Turn, text: str) -> Turn:
    return replace(turn, plan=replace(turn.plan, alert=text))


def without_outcome(turn: Turn) -> Decision:
    """Return a turn as it was before its outcome."""
    return Decision(turn.number, turn.observation, turn.evaluation, turn.plan, turn.memory)


def write_pending(path: Path, **facts: Any) -> Decision:
    """Write nine turns, and a tenth whose controller was killed while it applied the change."""
    *before, killed = turns(10)
    write(path, before, **facts)
    with Journal(path) as journal:
        journal.decided(without_outcome(killed))
    return without_outcome(killed)


def write_interrupted(path: Path) -> Turn:
    """Write the same, resumed at 700 seconds by a controller that finds everything as before the change."""
    unfinished = write_pending(path)
    engine = FakeEngine(FakeClock(700.0))
    with Journal(path) as journal:
        loop = Loop(engine, engine.clock, Sometimes(), Bounds(1, 20), recorder=journal)
        loop.resume(unfinished, journal.changed_at(0.0))
        return loop.reconcile(unfinished)
