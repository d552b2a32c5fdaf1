"""How `rheostat status` shows what a run is doing and did last."""

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.table import Table

from rheostat.cli import console, prose
from rheostat.cli.chart import span
from rheostat.cli.journals import Times, change_text, measures, query_measures, title, without_outcome
from rheostat.cli.node_table import node_table
from rheostat.control.turn import Decision
from rheostat.journal.liveness import Liveness, State
from rheostat.journal.rows import Alert, Totals
from rheostat.journal.run_status import DAY_SECONDS, RunStatus, read_status
from rheostat.journal.store import Journal
from rheostat.journal.window import operator_rows

SHOWN_PARTS = 5  # of a batch


def show(path: Path, changes: int, as_json: bool) -> None:
    """Show a run with its last changes."""
    now = time.time()
    with Journal.read(path) as journal:
        status = read_status(journal, changes, now)
    if as_json:
        console.print_json(_json(status))
    else:
        _print(status, Times.of(status.facts, now))


def describe_liveness(controller: Liveness) -> str:
    """Say whether the controller is alive.

    >>> describe_liveness(Liveness(State.SILENT, 60.0, 300.0))
    'no turn for 5m: the controller may have stopped'
    """
    age = controller.age_seconds
    ago = f"{span(age)} ago" if age is not None and age >= 1 else "just now"
    sentences = {
        State.NEW: "no turn yet",
        State.RECORDED: f"simulated, {span(controller.ended_at)}",
        State.STOPPED: f"stopped, last turn {ago}",
        State.GONE: f"not running: process {controller.pid} is gone, last turn {ago}",
        State.SILENT: f"no turn for {span(age or 0.0)}: the controller may have stopped",
        State.RUNNING: f"running, last turn {ago}",
    }
    return sentences[controller.state]


def _print(status: RunStatus, times: Times) -> None:
    console.out.print(prose.plain(title(status.facts)), style="bold", soft_wrap=True)
    began = f"began {times.at(0)}; " if times.started_at is not None else ""
    turns = console.count(status.whole_run.turns, "turn")
    prose.say(f"{began}{turns}; {describe_liveness(status.liveness)}", "", "")
    if status.latest is not None:
        _print_window(status.latest, times)
        prose.show(_operator_table(status.latest))
        console.out.print()
        prose.show(node_table(status.latest.observation.nodes))
    _print_changes(status, times)
    if status.latest is not None and status.latest.plan.advice:
        prose.heading("Advice")
        prose.items([status.latest.plan.advice])
    if status.alerts:
        prose.heading("Alerts")
        prose.items(_alert(alert, times) for alert in status.alerts)
    if status.events:
        prose.heading("Events")
        prose.items(f"{times.at(event.at)} {event.kind}: {event.text}" for event in status.events)
    prose.heading("Totals")
    if status.liveness.ended_at > DAY_SECONDS:
        prose.say(f"last 24 h: {_totals(status.last_day)}")
    prose.say(f"whole run: {_totals(status.whole_run)}")


def _print_window(latest: Decision, times: Times) -> None:
    window = latest.observation
    prose.heading(
        f"Latest window: {span(window.seconds)} until {times.at(window.end)} (turn {latest.number})"
    )
    prose.say(measures(window.application))
    prose.items(query_measures(window))
    parts = sorted(window.application.batch_parts.items(), key=lambda part: -part[1])
    if parts:
        seconds = (f"{name} {console.number(part, 's')}" for name, part in parts[:SHOWN_PARTS])
        prose.say(f"parts of a batch: {', '.join(seconds)}")
    if latest.evaluation.missing:
        prose.say(f"not measured: {', '.join(latest.evaluation.missing)}")
    console.out.print()


def _operator_table(latest: Decision) -> Table:
    table = console.table(
        "", "operator", "instances", "rows/s", "utilisation", "CPU cores", "skew", "waiting"
    )
    table.title = None
    for row in operator_rows(latest):
        table.add_row(
            prose.plain(row.name),
            str(row.parallelism),
            console.number(row.rows_per_second),
            console.number(row.utilisation, "%"),
            console.number(row.cpu_cores),
            console.number(row.skew),
            console.number(row.waiting),
        )
    return table


def _print_changes(status: RunStatus, times: Times) -> None:
    changes = [*status.changes, *([status.pending] if status.pending else [])]
    count = status.whole_run.attempts + (status.pending is not None)
    if not count:
        prose.heading("No change yet")
        return
    shown = f", the last {len(changes)}" if len(changes) < count else ""
    prose.heading(f"{console.count(count, 'change')}{shown}; `rheostat explain TURN` explains one of them")
    for turn in changes:
        prose.say(f"turn {turn.number}, {times.at(turn.at)}: {change_text(turn)}", "  - ", "    ")
        prose.say(f"because {turn.reason}", "    ", "    ")
        if turn.status in ("failed", "interrupted"):
            prose.say(f"but {turn.outcome}", "    ", "    ")
        elif turn is status.pending:
            prose.say(f"but {without_outcome(status.liveness)}", "    ", "    ")


def _alert(alert: Alert, times: Times) -> str:
    if alert.times == 1:
        return f"{times.at(alert.last_at)}: {alert.text}"
    return f"{times.at(alert.first_at)} to {times.at(alert.last_at)}, {alert.times:,} times: {alert.text}"


def _totals(totals: Totals) -> str:
    words = [f"{console.count(totals.applied, 'change')} applied", f"{totals.failed:,} failed"]
    if totals.interrupted:
        words.append(f"{totals.interrupted:,} interrupted")
    if totals.dry_run:
        words.append(f"{totals.dry_run:,} in dry runs")
    costs = [f"{console.number(totals.node_seconds / 3600)} node-hours"]
    if totals.money:
        costs.append(f"money {totals.money:,.2f}")
    return "; ".join([", ".join(words), *costs, f"paused for {console.number(totals.pause_seconds)} s"])


def _json(status: RunStatus) -> dict[str, Any]:
    latest = status.latest
    return {
        "journal": str(status.path),
        "facts": status.facts,
        "state": status.liveness.state,
        "says": describe_liveness(status.liveness),
        "last_turn_seconds_ago": status.liveness.age_seconds,
        "turn": latest.number if latest else None,
        "window": _window_json(latest) if latest else None,
        "advice": latest.plan.advice if latest else None,
        "pending": asdict(status.pending) if status.pending else None,
        "changes": [asdict(turn) for turn in status.changes],
        "alerts": [asdict(alert) for alert in status.alerts],
        "events": [asdict(event) for event in status.events],
        "last_day": asdict(status.last_day),
        "whole_run": asdict(status.whole_run),
    }


def _window_json(latest: Decision) -> dict[str, Any]:
    window = latest.observation
    rows = [asdict(row) for row in operator_rows(latest)]
    return {
        "start": window.start,
        "end": window.end,
        "total_load": window.total_load,
        **asdict(window.application),
        "queries": {name: asdict(query) for name, query in window.queries.items()},
        "missing": latest.evaluation.missing,
        "operators": {row.pop("name"): row for row in rows},
        "nodes": [asdict(node) for node in window.nodes],
    }
