"""Whether the controller that writes a journal is alive, as far as the journal and this machine tell."""

import os
import socket
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rheostat.control.turn import Decision, Turn
from rheostat.journal.reader import JournalReader

PATIENCE_SECONDS = 60.0  # a controller is not called silent before


class State(StrEnum):
    """What became of a controller."""

    NEW = "new"  # it has not finished a turn yet
    RECORDED = "recorded"  # no time of day is known: a simulation
    STOPPED = "stopped"
    GONE = "gone"  # its process does not exist any more
    SILENT = "silent"
    RUNNING = "running"


@dataclass(frozen=True, slots=True)
class Liveness:
    """A controller's state, and what it was concluded from."""

    state: State
    ended_at: float = 0.0  # of the newest turn or decision, seconds since the run began
    age_seconds: float | None = None  # since then; None: unknown
    pid: int | None = None  # of the process that is gone


def started_at(facts: dict[str, Any], now: float) -> float | None:
    """When the run began, in unix seconds; None where its journal holds no plausible time."""
    started = facts.get("started_at")
    return float(started) if isinstance(started, int | float) and 0 <= started <= now else None


def pending_after(journal: JournalReader, last: Turn | None) -> Decision | None:
    """The decision without an outcome; None if it became a turn while the journal was being read."""
    pending = journal.pending()
    return pending if pending and (last is None or pending.number > last.number) else None


def judge_liveness(journal: JournalReader, now: float) -> Liveness:
    """Judge a controller by its newest entries, at a time in unix seconds."""
    facts, last = journal.facts(), journal.last()
    newest = pending_after(journal, last) or last
    if newest is None:
        return Liveness(State.NEW)
    ended_at = newest.outcome.finished_at if isinstance(newest, Turn) else newest.plan.decided_at
    began = started_at(facts, now)
    if began is None:
        return Liveness(State.RECORDED, ended_at)
    age, pid = now - began - ended_at, facts.get("pid")
    events = journal.events(last=1)
    if events and events[0].kind == "stopped" and events[0].at >= ended_at:
        return Liveness(State.STOPPED, ended_at, age)
    if isinstance(pid, int) and _is_of_this_machine(facts) and not _exists(pid):
        return Liveness(State.GONE, ended_at, age, pid)
    silent = age > max(PATIENCE_SECONDS, 3 * newest.observation.seconds)
    return Liveness(State.SILENT if silent else State.RUNNING, ended_at, age)


def _is_of_this_machine(facts: dict[str, Any]) -> bool:
    """A process number means something on its own machine only."""
    return facts.get("host") in (None, socket.gethostname())


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # another user's process
        return True
    return True
