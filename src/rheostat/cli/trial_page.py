"""How `rheostat trial` shows its runs and its report."""

from pathlib import Path

from rheostat.cli import console
from rheostat.trials import rounds
from rheostat.trials.contestants import Contestant
from rheostat.trials.report import Report
from rheostat.trials.trial import Trial

TABLES = (  # a terminal has no room for all of them side by side
    ("runs", "degraded", "lag s", "p99 lag s", "settling s"),
    ("node-seconds", "saved", "x oracle", "changes", "overshoot"),
)


def run(trial: Trial, one: Contestant, number: int, out: Path, place: str) -> None:
    """Run a contestant, with its progress, and print its result."""
    with console.err.status("") as status:
        result = rounds.run(
            trial, one, number, out, lambda text: status.update(f"{place}: {one.name}: {text}")
        )
    if result is not None:
        folder = rounds.folder_of(out, one, number)
        again = f"; delete {folder} to try it again" if result.failure else ""
        console.out.print(f"{place:>9}  {one.name:<24} {result.line()}{again}", soft_wrap=True)


def show(report: Report) -> None:
    """Print the measures and the bounds."""
    headers = ["", "runs", *(header for header, _, _ in report.columns)]
    console.out.print(f"\n{report.title}", style="bold", soft_wrap=True)
    for names in TABLES:
        shown = [headers.index(name) for name in ("", *names)]
        table = console.table("", *(headers[index] for index in shown))
        table.columns[0].min_width = 15
        for row in report.rows():
            table.add_row(*(row[index] for index in shown))
        console.out.print()
        console.out.print(table)
    for line in report.failed():
        console.out.print(line, soft_wrap=True)
    bounds = console.table("Bounds", "policy", "what", "found", "bound", "", text=2)
    for check in report.checks:
        bounds.add_row(*check.cells)
    console.out.print()
    console.out.print(bounds)
