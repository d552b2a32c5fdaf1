"""What a run is doing and did last, from its journal alone."""

import os
import socket
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from rheostat.cli import console, prose
from rheostat.cli.chart import span
from rheostat.cli.journals import Times, headline, measures, skew, title
from rheostat.control.loop import Turn
from rheostat.journal.reader import JournalReader
from rheostat.journal.store import Journal
from rheostat.journal.summaries import Alert, Totals, TurnSummary
from rheostat.model.observation import Event

SHOWN_NODES = 12
DAY = 86_400.0
PATIENCE_SECONDS = 60.0  # a controller is not called silent before


@dataclass(frozen=True, slots=True)
class Look:
    """Everything that `status` shows."""

    path: Path
    facts: dict[str, Any]
    times: Times
    last: Turn | None
    changes: list[TurnSummary]
    alerts: list[Alert]
    events: list[Event]
    day: Totals
    whole: Totals


def show(path: Path, last: int, as_json: bool) -> None:
    """Show a run with its last changes."""
    with Journal.read(path) as opened:
        look = _look(opened, last, time.time())
    if as_json:
        console.print_json(_for_programs(look))
    else:
        _show(look)


def _look(journal: JournalReader, last: int, now: float) -> Look:
    facts, newest = journal.facts(), journal.last()
    end = newest.outcome.finished_at if newest else 0.0
    return Look(
        path=journal.path,
        facts=facts,
        times=Times.of(facts, now),
        last=newest,
        changes=journal.changes(last),
        alerts=journal.alerts(last),
        events=journal.events(last=last),
        day=journal.totals(end - DAY),
        whole=journal.totals(),
    )


def life(look: Look) -> tuple[str, str]:
    """Whether the controller lives: a word for programs, a sentence for people."""
    if look.last is None:
        return "new", "no turn yet"
    ended = look.last.outcome.finished_at
    age = look.times.age(ended)
    if age is None:
        return "recorded", f"a record of {span(ended)}"
    since = f"{span(age)} ago" if age >= 1 else "just now"
    if look.events and look.events[-1].kind == "stopped" and look.events[-1].at >= ended:
        return "stopped", f"stopped, last turn {since}"
    pid = look.facts.get("pid")
    if isinstance(pid, int) and _is_here(look.facts) and not _exists(pid):
        return "gone", f"not running: process {pid} is gone, last turn {since}"
    if age > max(PATIENCE_SECONDS, 3 * look.last.observation.seconds):
        return "silent", f"no turn since {span(age)}: not running?"
    return "running", f"running, last turn {since}"


def _is_here(facts: dict[str, Any]) -> bool:
    """A process number means something on its own machine only."""
    return facts.get("host") in (None, socket.gethostname())


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # somebody else's, but there
        return True
    return True


def _show(look: Look) -> None:
    times = look.times
    console.out.print(prose.plain(title(look.facts)), style="bold", soft_wrap=True)
    began = f"began {times.at(0)}; " if times.started_at is not None else ""
    prose.say(f"{began}{console.count(look.whole.turns, 'turn')}; {life(look)[1]}", "", "")
    if look.last is not None:
        _show_window(look.last, times)
        prose.show(_operators(look.last))
        console.out.print()
        prose.show(_nodes(look.last))
    _show_changes(look)
    if look.alerts:
        prose.heading("Alerts")
        prose.items(_alert(alert, times) for alert in look.alerts)
    if look.events:
        prose.heading("Events")
        prose.items(f"{times.at(event.at)} {event.kind}: {event.text}" for event in look.events)
    prose.heading("Sums")
    if look.last is not None and look.last.outcome.finished_at > DAY:
        prose.say(f"last 24 h: {_sums(look.day)}")
    prose.say(f"whole run: {_sums(look.whole)}")


def _show_window(last: Turn, times: Times) -> None:
    seen = last.observation
    prose.heading(f"Latest window: {span(seen.seconds)} until {times.at(seen.end)} (turn {last.number})")
    prose.say(measures(seen))
    parts = sorted(seen.application.batch_parts.items(), key=lambda part: -part[1])
    if parts:
        shares = ", ".join(f"{name} {console.number(part, 's')}" for name, part in parts[:5])
        prose.say(f"parts of a batch: {shares}")
    if last.evaluation.missing:
        prose.say(f"not measured: {', '.join(last.evaluation.missing)}")
    console.out.print()


def _operators(last: Turn) -> Table:
    table = console.table(
        "", "operator", "instances", "rows/s", "utilisation", "CPU cores", "skew", "waiting"
    )
    table.title = None
    seen = last.observation
    for name, operator in seen.operators.items():
        judged = last.evaluation.operators.get(name)
        table.add_row(
            prose.plain(name),
            str(operator.parallelism),
            console.number(_per_second(operator.processed, seen.seconds)),
            console.number(judged.utilisation if judged else None, "%"),
            console.number(_per_second(operator.cpu_seconds, seen.seconds)),
            console.number(skew(operator)),
            console.number(operator.waiting),
        )
    return table


def _nodes(last: Turn) -> Table:
    table = console.table("", "node", "kind", "region", "slots", "instances", "CPU", "memory", text=3)
    table.title = None
    nodes = last.observation.nodes
    for node in nodes[:SHOWN_NODES]:
        table.add_row(
            prose.plain(node.name),
            prose.plain(node.kind),
            prose.plain(node.region) + (" (hidden)" if node.hidden else ""),
            str(node.slots),
            "-" if node.instances is None else str(node.assigned),
            console.number(node.cpu, "%"),
            console.number(node.memory, "%"),
        )
    if len(nodes) > SHOWN_NODES:
        rest = nodes[SHOWN_NODES:]
        cpu = [node.cpu for node in rest if node.cpu is not None]
        slots, placed = sum(node.slots for node in rest), sum(node.assigned for node in rest)
        mean = console.number(sum(cpu) / len(cpu), "%") if cpu else "-"
        table.add_row(f"{len(rest)} more", "", "", str(slots), str(placed), mean, "")
    return table


def _show_changes(look: Look) -> None:
    tried = look.whole.applied + look.whole.failed + look.whole.dry_run
    if not tried:
        prose.heading("No change yet")
        return
    shown = f", the last {len(look.changes)}" if len(look.changes) < tried else ""
    prose.heading(f"{console.count(tried, 'change')}{shown}; `rheostat explain TURN` tells all about one")
    for line in look.changes:
        prose.say(f"turn {line.number}, {look.times.at(line.at)}: {headline(line)}", "  - ", "    ")
        prose.say(f"because {line.reason}", "    ", "    ")
        if line.status == "failed":
            prose.say(f"but {line.outcome}", "    ", "    ")


def _alert(alert: Alert, times: Times) -> str:
    if alert.times == 1:
        return f"{times.at(alert.last_at)}: {alert.text}"
    return f"{times.at(alert.first_at)} to {times.at(alert.last_at)}, {alert.times:,} times: {alert.text}"


def _sums(totals: Totals) -> str:
    words = [f"{console.count(totals.applied, 'change')} applied", f"{totals.failed:,} failed"]
    if totals.dry_run:
        words.append(f"{totals.dry_run:,} in dry runs")
    hours = console.number(totals.node_seconds / 3600)
    paused = console.number(totals.pause_seconds)
    return f"{', '.join(words)}; {hours} node-hours; stood still for {paused} s"


def _per_second(value: float | None, seconds: float) -> float | None:
    return value / seconds if value is not None and seconds > 0 else None


def _for_programs(look: Look) -> dict[str, Any]:
    state, sentence = life(look)
    last = look.last
    return {
        "journal": str(look.path),
        "facts": look.facts,
        "state": state,
        "says": sentence,
        "last_turn_seconds_ago": look.times.age(last.outcome.finished_at) if last else None,
        "turn": last.number if last else None,
        "window": _window_for_programs(last) if last else None,
        "changes": [asdict(line) for line in look.changes],
        "alerts": [asdict(alert) for alert in look.alerts],
        "events": [asdict(event) for event in look.events],
        "last_day": asdict(look.day),
        "whole_run": asdict(look.whole),
    }


def _window_for_programs(last: Turn) -> dict[str, Any]:
    seen = last.observation
    operators = {
        name: {
            "parallelism": operator.parallelism,
            "rows_per_second": _per_second(operator.processed, seen.seconds),
            "utilisation": judged.utilisation if (judged := last.evaluation.operators.get(name)) else None,
            "cpu_cores": _per_second(operator.cpu_seconds, seen.seconds),
            "skew": skew(operator),
            "waiting": operator.waiting,
        }
        for name, operator in seen.operators.items()
    }
    return {
        "start": seen.start,
        "end": seen.end,
        "total_load": seen.total_load,
        **asdict(seen.application),
        "missing": last.evaluation.missing,
        "operators": operators,
        "nodes": [asdict(node) for node in seen.nodes],
    }
