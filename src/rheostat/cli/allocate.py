"""`rheostat allocate`: which components should get additional units."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rheostat.cli import options
from rheostat.model.errors import UserError, nearest

if TYPE_CHECKING:
    from rheostat.allocate import Allocation, MeasuredTopology

APPLIED_BY_DEFAULT = "combined"


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(
        "allocate", epilog="Example: rheostat allocate --journal .rheostat/topology10 --units 3 --apply"
    )(_allocate)


def _allocate(
    units: Annotated[int, typer.Option("--units", "-k", help="Number of units to add.")],
    file: Annotated[
        Path | None,
        typer.Argument(help="JSON or YAML file with a topology and its measures (default: a run's journal)."),
    ] = None,
    journal: options.JournalOption = None,
    algorithm: Annotated[
        str, typer.Option("--algorithm", "-a", help="stela, predictive, combined, optimal, or all.")
    ] = "all",
    apply: Annotated[
        bool,
        typer.Option("--apply", help="Hand the answer (of all: combined's) to the run, as more instances."),
    ] = False,
    seconds: Annotated[
        float | None,
        typer.Option("--seconds", help="Seconds that optimal may search for a proof.", min=0.1, max=3600),
    ] = None,
    as_json: options.JsonOption = False,
) -> None:
    """Find the components whose growth raises throughput most.

    They are measured in a file, or in the journal of a run, where a unit is an instance.

    Example: rheostat allocate examples/allocate/p4_diamond.json --units 4 --algorithm optimal --json
    """
    from rheostat.allocate import ALGORITHMS, read_topology

    algorithms = [*ALGORITHMS, "all"]
    if algorithm not in algorithms:
        raise UserError(f"unknown algorithm {algorithm!r}{nearest(algorithm, algorithms)}")
    if file and (journal or apply):
        raise UserError(f"{'--journal' if journal else '--apply'} is for a run: omit {file}")
    chosen = list(ALGORITHMS) if algorithm == "all" else [algorithm]
    if file:
        from rheostat.cli import allocate_page

        topology = read_topology(file)
        allocate_page.show(topology, units, _answers(topology, units, chosen, seconds), as_json)
        return
    applied = (APPLIED_BY_DEFAULT if algorithm == "all" else algorithm) if apply else None
    raise typer.Exit(_of_run(journal, units, chosen, seconds, applied, as_json))


def _of_run(
    given: Path | None,
    units: int,
    chosen: list[str],
    seconds: float | None,
    applied: str | None,
    as_json: bool,
) -> int:
    """Allocate for a run; the exit code."""
    from rheostat.cli import allocate_page, journals
    from rheostat.journal.measured import read_measured
    from rheostat.journal.store import Journal

    path = journals.find_journal(given, Path.cwd())
    with Journal.read(path) as journal:
        run = read_measured(journal)
    answers = _answers(run.topology, units, chosen, seconds)
    if applied is None:
        allocate_page.show(run.topology, units, answers, as_json, run)
        return 0
    return allocate_page.apply(path.parent, run, units, answers, applied, as_json)


def _answers(
    topology: MeasuredTopology, units: int, chosen: list[str], seconds: float | None
) -> dict[str, Allocation]:
    from rheostat.allocate import allocate

    return {name: allocate(topology, units, name, seconds) for name in chosen}
