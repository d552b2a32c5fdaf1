"""The output of `rheostat trial`: its runs and its report."""

from pathlib import Path

from rheostat.cli import console, measures_page
from rheostat.trials import rounds
from rheostat.trials.contestants import Contestant
from rheostat.trials.report import Report
from rheostat.trials.trial import Trial

TABLES = (  # a terminal is too narrow for all columns side by side
    ("runs", "degraded", "lag s", "p99 lag s", "settling s"),
    ("node-seconds", "saved", "x oracle", "changes", "overshoot"),
)


def run(trial: Trial, contestant: Contestant, number: int, out: Path, place: str) -> None:
    """Run a contestant, show its progress and print its result."""
    with console.err.status("") as status:
        result = rounds.run(
            trial, contestant, number, out, lambda text: status.update(f"{place}: {contestant.name}: {text}")
        )
    if result is not None:
        folder = rounds.folder_of(out, contestant, number)
        again = f"; delete {folder} to try again" if result.failure else ""
        console.out.print(f"{place:>9}  {contestant.name:<24} {result.line()}{again}", soft_wrap=True)


def show(report: Report, out: Path) -> None:
    """Draw the report, write it to its folder and print it."""
    plots = measures_page.draw(report.title, report.series, out, "trial") if report.series else []
    path = rounds.write_report(out, report, [plot.name for plot in plots[:1]])
    show_tables(report)
    console.out.print(f"\nreport: {path}; plot, results and journals are in the same folder", soft_wrap=True)


def show_tables(report: Report) -> None:
    """Print the measures and the bounds."""
    headers = ["", "runs", *(header for header, _, _ in report.columns)]
    console.out.print(f"\n{report.title}", style="bold", soft_wrap=True)
    for names in TABLES:
        columns = [headers.index(name) for name in ("", *names)]
        table = console.table("", *(headers[index] for index in columns))
        table.columns[0].min_width = 15
        for row in report.rows():
            table.add_row(*(row[index] for index in columns))
        console.out.print()
        console.out.print(table)
    for failure in report.failed():
        console.out.print(failure, soft_wrap=True)
    bounds = console.table("Bounds", "policy", "what", "found", "bound", "", text=2)
    for check in report.checks:
        bounds.add_row(*check.cells)
    console.out.print()
    console.out.print(bounds)
