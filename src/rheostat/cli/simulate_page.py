"""How `rheostat simulate` shows a run: its decisions, and a table of its steps."""

import csv
from pathlib import Path

import numpy as np
from rich.table import Table

from rheostat.cli import console
from rheostat.control.turn import Turn
from rheostat.engines.simulator.comparison import Run
from rheostat.model.decision import Status
from rheostat.model.files import replacing

SHOWN = 8  # decisions in the terminal


def show(decisions: list[Turn]) -> None:
    """Print the last decisions."""
    console.out.print()
    console.out.print(
        console.count(len(decisions), "decision")
        + (f", the last {SHOWN}:" if len(decisions) > SHOWN else ""),
        style="bold",
    )
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(overflow="fold")
    for turn in decisions[-SHOWN:]:
        plan, outcome = turn.plan, turn.outcome
        lines = [outcome.configuration.describe(plan.current), f"because {plan.reason}"]
        if outcome.status is Status.FAILED:
            lines.append(f"FAILED: {outcome.reason}")
        if plan.alert:
            lines.append(f"ALERT: {plan.alert}")
        grid.add_row(f"{plan.decided_at:,.0f} s", "\n".join(lines))
    console.out.print(grid)


def decision(turn: Turn) -> dict[str, object]:
    """A decision for programs."""
    return {
        "number": turn.number,
        "at": turn.plan.decided_at,
        "change": turn.outcome.configuration.describe(turn.plan.current),
        "reason": turn.plan.reason,
        "causes": [str(cause) for cause in turn.plan.causes],
        "rejected": list(turn.plan.rejected),
        "vetoes": list(turn.plan.vetoes),
        "alert": turn.plan.alert,
        "status": turn.outcome.status.value,
        "pause_seconds": turn.outcome.pause_seconds,
    }


def write_series(path: Path, run: Run) -> None:
    """Write what happened in each step."""
    s = run.series
    times = np.arange(1, len(s.nodes) + 1) * s.step_seconds
    with replacing(path) as fresh, fresh.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["time", "load", "throughput", "lag_seconds", "nodes", "instances"])
        columns = (times, s.load, s.throughput, s.lag, s.nodes, s.instances)
        writer.writerows(zip(*(np.round(column, 3).tolist() for column in columns), strict=True))
