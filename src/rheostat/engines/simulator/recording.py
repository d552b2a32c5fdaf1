"""A simulated run with its full record on disk: every turn in a journal, every step in a CSV file."""

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rheostat.control.turn import Turn
from rheostat.engines.simulator.comparison import Run, run_policy
from rheostat.engines.simulator.scenario import Scenario
from rheostat.journal.store import Journal
from rheostat.model.errors import UserError
from rheostat.model.files import make_folder, replacing
from rheostat.policies.base import Policy

JOURNAL, SERIES = "journal.sqlite", "series.csv"


@dataclass(frozen=True)
class Recording:
    """A run, its decisions, and the files that hold everything else."""

    run: Run
    decisions: list[Turn]
    journal: Path
    series: Path


def claim_folder(folder: Path) -> None:
    """Create the folder of a recording; UserError if it holds one."""
    make_folder(folder)
    if (folder / JOURNAL).exists():
        raise UserError(f"{folder / JOURNAL} exists already; choose another folder with --out, or remove it")


def record_run(
    scenario: Scenario,
    policy: Policy,
    facts: dict[str, Any],
    folder: Path,
    progress: Callable[[float], None],
) -> Recording:
    """Run one policy and write down everything that it observed, decided and did."""
    decisions = list[Turn]()
    with Journal(folder / JOURNAL) as journal:
        journal.describe(facts)

        def keep(turn: Turn) -> None:
            if turn.plan.changes or turn.plan.alert:
                decisions.append(turn)

        run = run_policy(scenario, policy, on_turn=keep, progress=progress, recorder=journal)
    _write_series(folder / SERIES, run)
    return Recording(run, decisions, folder / JOURNAL, folder / SERIES)


def _write_series(path: Path, run: Run) -> None:
    s = run.series
    times = np.arange(1, len(s.nodes) + 1) * s.step_seconds
    with replacing(path) as fresh, fresh.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["time", "load", "throughput", "lag_seconds", "nodes", "instances"])
        columns = (times, s.load, s.throughput, s.lag, s.nodes, s.instances)
        writer.writerows(zip(*(np.round(column, 3).tolist() for column in columns), strict=True))
