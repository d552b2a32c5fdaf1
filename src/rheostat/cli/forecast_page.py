"""Backtests of forecasts as tables and as JSON."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rheostat.cli import console
from rheostat.cli.chart import span
from rheostat.engines.simulator.forecast_backtest import AHEAD, Backtest, Judged

NOTES = """\
error: mean absolute error over the mean load, so many steps ahead
held: the share of loads at or below the 90 % quantile
x oracle, lag: simulated; that quantile alone decides the nodes (start-up 60 s)
none: no forecast; the load may use 80 % of the nodes
cost: x oracle + the mean lag in minutes"""


def as_curve(text: str) -> str:
    """Read a file name as a trace.

    >>> as_curve("load.csv"), as_curve("sine:period=15m")
    ('trace:load.csv', 'sine:period=15m')
    """
    return f"trace:{text}" if re.match(r"(?!trace\s*:)[^:]*\.csv(:|$)", text, re.IGNORECASE) else text


def file_name(text: str, taken: Sequence[str]) -> str:
    """A name for a load's files.

    >>> file_name("trace:data/load.csv:scale=2", []), file_name("sine:low=1", ["sine"])
    ('load', 'sine-2')
    """
    curve = as_curve(text).split(":")
    name = Path(curve[1].removeprefix("path=")).stem if curve[0] == "trace" else curve[0]
    name = re.sub(r"[^\w.-]", "_", name) or "load"
    return name if name not in taken else f"{name}-{1 + sum(other.startswith(name) for other in taken)}"


def show(text: str, result: Backtest, files: Sequence[Path]) -> None:
    """Print the table of one load."""
    load, step = result.load, result.load.step_seconds
    ahead = [span(step * steps) for steps in AHEAD]
    title = (
        f"{text}: {len(load.judged):,} steps of {span(step)} judged, {load.training:,} before them trained on"
    )
    held = [f"held {ahead[0]}", *ahead[1:]]
    table = console.table(
        title, "method", f"error {ahead[0]}", *ahead[1:], *held, "x oracle", "lag", "p99 lag", "cost"
    )
    for name, judged in result.judged.items():
        table.add_row(name, *_cells(judged))
    console.out.print(table)
    console.out.print(f"cheapest to follow: {result.cheapest}")
    print(console.harmless("\n".join(["files: " + ", ".join(map(str, files)), ""])))


def as_json(results: Mapping[str, Backtest], files: Mapping[str, Sequence[Path]]) -> list[dict[str, Any]]:
    """All measures by their full names."""
    return [
        {
            "load": text,
            "step_seconds": result.load.step_seconds,
            "trained_steps": result.load.training,
            "judged_steps": len(result.load.judged),
            "cheapest": result.cheapest,
            "methods": {name: _measures(judged) for name, judged in result.judged.items()},
            "files": [str(path) for path in made],
        }
        for (text, result), made in zip(results.items(), files.values(), strict=True)
    ]


def _cells(judged: Judged) -> list[str]:
    replay, following = judged.replay, judged.following
    errors = [replay.error(steps) if replay else None for steps in AHEAD]
    held = [replay.coverage(steps) if replay else None for steps in AHEAD]
    return [
        *("-" if error is None else f"{error:.3f}" for error in errors),
        *("-" if share is None else f"{share:.1%}" for share in held),
        f"{following.node_seconds_to_oracle:.2f}",
        f"{following.mean_lag_seconds:.1f} s",
        f"{following.p99_lag_seconds:.0f} s",
        f"{judged.cost:.2f}",
    ]


def _measures(judged: Judged) -> dict[str, Any]:
    replay = judged.replay
    return {
        "error": {str(steps): replay.error(steps) for steps in AHEAD} if replay else None,
        "held": {str(steps): replay.coverage(steps) for steps in AHEAD} if replay else None,
        "cost": judged.cost,
        "simulated": asdict(judged.following),
    }
