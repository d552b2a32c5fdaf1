"""The question behind `rheostat profile`: what the journals of an application's runs teach."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rheostat.analyze.profiles.changes import Change
from rheostat.analyze.profiles.samples import Points, points, together
from rheostat.control.turn import Turn
from rheostat.journal.reader import JournalReader
from rheostat.journal.store import Journal
from rheostat.model.decision import Status
from rheostat.model.errors import UserError


@dataclass(frozen=True, slots=True)
class ProfiledRuns:
    """One application in one mode, over one or several runs."""

    application: str
    mode: str
    operators: tuple[str, ...]
    points: Points
    changes: tuple[Change, ...]


def read_runs(paths: Sequence[Path], progress: Callable[[int], None] = lambda _: None) -> ProfiledRuns:
    """Read the journals of one application; UserError if they are of several."""
    runs = list[ProfiledRuns]()
    for path in paths:
        progress(len(runs))
        with Journal.read(path) as journal:
            runs.append(_read(journal))
    first = runs[0]
    for path, run in zip(paths, runs, strict=True):
        if (run.application, run.mode, run.operators) != (first.application, first.mode, first.operators):
            raise UserError(
                f"{path} is of {_named(run)}, {paths[0]} of {_named(first)}: profile each by itself"
            )
    return ProfiledRuns(
        first.application,
        first.mode,
        first.operators,
        together([run.points for run in runs]),
        tuple(change for run in runs for change in run.changes),
    )


def applied_changes(turns: Iterable[Turn]) -> list[Change]:
    """The changes of a run, each of one kind: a pause is a rescale's, and who adds nodes waits for them."""
    changes = []
    for turn in turns:
        if turn.outcome.status is not Status.APPLIED or not turn.plan.changes:
            continue
        before, after = turn.plan.current, turn.outcome.configuration
        took = turn.outcome.finished_at - turn.outcome.started_at
        application = turn.observation.application
        about = application.state_bytes or 0.0, application.total_load or 0.0
        if turn.outcome.pause_seconds > 0:
            changes.append(Change("rescale", turn.outcome.pause_seconds, *about))
        elif after.nodes > before.nodes:
            changes.append(Change("node start", took, *about))
        elif after.nodes == before.nodes and after.parallelism != before.parallelism:
            changes.append(Change("rebalance", took, *about))
    return changes


def _read(journal: JournalReader) -> ProfiledRuns:
    facts, turns = journal.facts(), list(journal.turns())
    if not turns:
        raise UserError(f"{journal.path}: has no window yet; wait for the run's first decision and ask again")
    name = facts.get("application") or facts.get("topology") or "application"
    return ProfiledRuns(
        str(name),
        str(facts.get("mode", "")),
        tuple(turns[-1].observation.operators),
        points(turn.observation for turn in turns),
        tuple(applied_changes(turns)),
    )


def _named(run: ProfiledRuns) -> str:
    names = ", ".join(run.operators[:4])
    return f"{run.application} ({run.mode}; {names}{', ...' if len(run.operators) > 4 else ''})"
