"""Journals for the commands that read them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from rheostat.control.guards import Guards
from rheostat.control.loop import Loop, Turn
from rheostat.journal.store import Journal
from rheostat.model.configuration import Bounds
from rheostat.model.observation import Event
from rheostat.policies.base import Policy
from tests.control.fakes import FakeClock, FakeEngine, Sometimes

FACTS = {"topology": "words", "policy": "sometimes", "mode": "pipelined", "seed": 0}


def turns(
    count: int, policy: Policy | None = None, guards: Guards | None = None, **engine: Any
) -> list[Turn]:
    """So many turns, one a minute; a change every tenth unless a policy decides otherwise."""
    made = FakeEngine(FakeClock(), **engine)
    loop = Loop(made, made.clock, policy or Sometimes(), Bounds(1, 20), guards or Guards())
    found = []
    for turn in loop.run(until=1e9):
        found.append(turn)
        if len(found) == count:
            break
    return found


def write(path: Path, written: list[Turn], *notes: Event, **facts: Any) -> Path:
    """A journal of turns and events."""
    with Journal(path) as journal:
        journal.describe({**FACTS, **facts})
        for turn in written:
            journal.add(turn)
        for event in notes:
            journal.note(event)
    return path


def with_alert(turn: Turn, text: str) -> Turn:
    return replace(turn, plan=replace(turn.plan, alert=text))
