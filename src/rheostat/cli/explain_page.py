"""One decision in plain sentences, with the numbers behind it and what came of it."""

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from rheostat.cli import console, prose
from rheostat.cli.journals import Times, headline, measures, seconds, title
from rheostat.control.loop import Turn
from rheostat.journal.reader import JournalReader
from rheostat.journal.store import Journal
from rheostat.journal.summaries import SHOWING, TurnSummary
from rheostat.model.decision import Cause, Status
from rheostat.model.errors import UserError

_RELATIONS = {"<": "below", "<=": "at most", ">": "above", ">=": "at least", "==": "exactly"}
_MEASURED = {
    "highest utilisation": "utilisation",
    "load (rows/s)": "load",
    "throughput (rows/s)": "throughput",
    "lag (s)": "lag_seconds",
    "backlog (rows)": "backlog",
    "nodes": "nodes",
}


@dataclass(frozen=True, slots=True)
class Story:
    """Everything that `explain` tells."""

    facts: dict[str, Any]
    times: Times
    line: TurnSummary
    turn: Turn | None  # None: the journal kept its line only
    after: list[TurnSummary]


def show(path: Path, decision: int | None, as_json: bool) -> None:
    """Explain a turn, or the latest change."""
    with Journal.read(path) as opened:
        story = _story(opened, decision, time.time())
    if as_json:
        console.print_json(_for_programs(story))
    else:
        _tell(story)


def _story(journal: JournalReader, number: int | None, now: float) -> Story:
    facts, line = journal.facts(), _chosen(journal, number)
    after = journal.after(line.number, SHOWING)
    changed = next((index for index, later in enumerate(after) if later.status == Status.APPLIED), SHOWING)
    return Story(facts, Times.of(facts, now), line, journal.turn(line.number), after[: changed + 1])


def _chosen(journal: JournalReader, number: int | None) -> TurnSummary:
    last = journal.last()
    if last is None:
        raise UserError(f"{journal.path}: has no turns yet, so there is nothing to explain")
    if number is None:
        newest = journal.changes(last=1)
        number = newest[0].number if newest else last.number
    elif not 1 <= number <= last.number:
        raise UserError(f"there is no turn {number}; {journal.path} has turns 1 to {last.number}")
    line = journal.line(number)
    if line is None:
        raise UserError(
            f"turn {number} was rolled up, as nothing happened in it; `rheostat status` lists the changes"
        )
    return line


def _tell(story: Story) -> None:
    line, times = story.line, story.times
    what = headline(line) if line.status != Status.UNCHANGED else "nothing was changed"
    prose.say(f"Turn {line.number} of {title(story.facts)}, decided at {times.at(line.at)}: {what}", "", "")
    if story.turn is None:
        _tell_line(line)
    else:
        _tell_seen(story.turn, times)
        _tell_why(story.turn)
        _tell_guards(story.turn)
        _tell_done(story.turn, times)
    if line.status == Status.APPLIED:
        _tell_brought(story)


def _tell_line(line: TurnSummary) -> None:
    """What is left of an old decision."""
    prose.heading("What is still known")
    prose.say("The journal is bounded and kept only the line of this decision.")
    nodes, instances = console.count(line.nodes, "node"), console.count(line.instances, "instance")
    prose.say(
        f"Seen: load {console.number(line.load, 'rows/s')}, throughput "
        f"{console.number(line.throughput, 'rows/s')}, lag {seconds(line.lag_seconds)}, "
        f"highest utilisation {console.number(line.utilisation)}, {nodes}, {instances}."
    )
    prose.say(f"Why: {line.reason}.")
    if line.veto:
        prose.say(f"The guards: {line.veto}.")
    if line.alert:
        prose.say(f"Alert: {line.alert}.")
    prose.say(f"Outcome ({line.status}): {line.outcome}.")


def _tell_seen(turn: Turn, times: Times) -> None:
    seen, current = turn.observation, turn.plan.current
    prose.heading("What was seen")
    nodes, instances = console.count(current.nodes, "node"), console.count(current.instances, "instance")
    prose.say(f"In the {seconds(seen.seconds)} until {times.at(seen.end)}, on {nodes} with {instances}:")
    prose.say(f"{measures(seen)}.")
    if turn.evaluation.missing:
        prose.say(f"Not measured: {', '.join(turn.evaluation.missing)}.")
    for event in seen.events:
        prose.say(f"At {times.at(event.at)}, {event.kind}: {event.text}.")
    if turn.evaluation.operators:
        console.out.print()
        prose.show(_operators(turn))


def _operators(turn: Turn) -> Table:
    columns = ("  operator", "instances", "demand rows/s", "capacity rows/s", "utilisation", "health")
    table = console.table("", *columns)
    table.title = None
    for name, judged in turn.evaluation.operators.items():
        seen = turn.observation.operators.get(name)  # absent where somebody edited the journal
        table.add_row(
            f"  {prose.plain(name)}",
            str(seen.parallelism) if seen else "-",
            console.number(judged.demand),
            console.number(judged.capacity),
            console.number(judged.utilisation, "%"),
            console.number(judged.health, "%"),
        )
    return table


def _tell_why(turn: Turn) -> None:
    plan = turn.plan
    prose.heading("Why")
    prose.say(f"The policy said: {plan.reason}.")
    prose.items(f"{_cause(cause)}." for cause in plan.causes)
    if plan.alert:
        prose.say(f"It raised an alert: {plan.alert}.")
    if plan.rejected:
        prose.heading("What was rejected")
        prose.items(f"{alternative}." for alternative in plan.rejected)


def _cause(cause: Cause) -> str:
    relation = _RELATIONS[cause.relation]
    return f"{cause.measure} of {cause.subject}: {cause.value:.4g}, {relation} {cause.threshold:.4g}"


def _tell_guards(turn: Turn) -> None:
    plan = turn.plan
    prose.heading("What the guards did")
    if not plan.vetoes:
        passed = "the wish passed as it was" if plan.changes else "there was no change to check"
        prose.say(f"Nothing: {passed}.")
        return
    wished = plan.wished.describe(plan.current) if plan.wished else "a change"
    prose.say(f"The policy wished {wished}. They {'changed' if plan.changes else 'refused'} it:")
    prose.items(f"{veto}." for veto in plan.vetoes)


def _tell_done(turn: Turn, times: Times) -> None:
    plan, outcome = turn.plan, turn.outcome
    prose.heading("What was done")
    if outcome.status is Status.UNCHANGED:
        prose.say("Nothing.")
        return
    if outcome.status is Status.DRY_RUN:
        prose.say(f"Nothing, as this was a {outcome.reason}.")
        return
    for number, step in enumerate(outcome.steps, 1):
        prose.say(f"{step}.", f"  {number}. ", "     ")
    word = "Applied" if outcome.status is Status.APPLIED else "FAILED"
    prose.say(f"{word}: {outcome.reason}.")
    took = outcome.finished_at - outcome.started_at
    still = seconds(outcome.pause_seconds) if outcome.pause_seconds else "not at all"
    prose.say(
        f"It took {seconds(took)}, until {times.at(outcome.finished_at)}; the application stood still "
        f"{'for ' if outcome.pause_seconds else ''}{still}."
    )
    if outcome.status is Status.FAILED:
        prose.items(f"{_cause(cause)}." for cause in outcome.causes if cause not in plan.causes)
        left = outcome.configuration.describe(plan.current)
        prose.say("The application runs as before." if left == "no change" else f"What remained: {left}.")


def _tell_brought(story: Story) -> None:
    prose.heading("What it was to bring, and what it brought")
    for name, value in (story.turn.plan.expected if story.turn else {}).items():
        prose.say(f"Expected {name} {console.number(value)}{_shown(name, story.after)}.")
    if not story.after:
        prose.say("The journal has no window after it.")
        return
    console.out.print()
    prose.show(_brought(story))
    if story.after[-1].status == Status.APPLIED:
        prose.say(f"Then turn {story.after[-1].number} changed it again.")


def _shown(name: str, after: list[TurnSummary]) -> str:
    """What the windows after a change showed of what was expected, as the end of a sentence."""
    if name not in _MEASURED or not after:
        return ""
    windows = "window" if len(after) == 1 else f"{len(after)} windows"
    values = ", ".join(console.number(getattr(line, _MEASURED[name])) for line in after)
    return f"; the next {windows} showed {values}"


def _brought(story: Story) -> Table:
    ordinals = ("next window", "2nd", "3rd")
    table = console.table("", "  ", "before", *ordinals[: len(story.after)])
    table.title = None
    for name, field in _MEASURED.items():
        values = (getattr(line, field) for line in (story.line, *story.after))
        table.add_row(f"  {name}", *(console.number(value) for value in values))
    return table


def _for_programs(story: Story) -> dict[str, Any]:
    line, turn = story.line, story.turn
    told: dict[str, Any] = {
        "facts": story.facts,
        "number": line.number,
        "kept": "line" if turn is None else "full",
        "line": asdict(line),
        "next": [asdict(later) for later in story.after],
    }
    if turn is not None:
        told |= _turn_for_programs(turn)
    return told


def _turn_for_programs(turn: Turn) -> dict[str, Any]:
    plan, outcome = turn.plan, turn.outcome
    return {
        "seen": asdict(turn.observation),
        "evaluation": asdict(turn.evaluation),
        "causes": [{**asdict(cause), "holds": cause.holds()} for cause in plan.causes],
        "rejected": plan.rejected,
        "wished": asdict(plan.wished) if plan.wished else None,
        "vetoes": plan.vetoes,
        "expected": dict(plan.expected),
        "current": asdict(plan.current),
        "target": asdict(plan.target),
        "outcome": asdict(outcome),
    }
