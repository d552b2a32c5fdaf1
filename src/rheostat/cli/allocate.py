"""`rheostat allocate`: which components should get additional units."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rheostat.cli import console
from rheostat.model.errors import UserError, nearest

if TYPE_CHECKING:
    from rheostat.allocate import Allocation, MeasuredTopology


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("allocate")(_allocate)


def _allocate(
    file: Annotated[Path, typer.Argument(help="JSON or YAML file with a topology and its measures.")],
    units: Annotated[int, typer.Option("--units", "-k", help="Number of units to add.")],
    algorithm: Annotated[
        str, typer.Option("--algorithm", "-a", help="stela, predictive, combined, optimal, or all.")
    ] = "all",
    seconds: Annotated[
        float | None,
        typer.Option("--seconds", help="Seconds that optimal may search for a proof.", min=0.1, max=3600),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Find the components whose growth raises throughput most.

    Example: rheostat allocate examples/allocate/p4_diamond.json --units 4 --algorithm optimal --json
    """
    from rheostat.allocate import ALGORITHMS, allocate, read_topology, throughput

    algorithms = [*ALGORITHMS, "all"]
    if algorithm not in algorithms:
        raise UserError(f"unknown algorithm {algorithm!r}{nearest(algorithm, algorithms)}")
    topology = read_topology(file)
    chosen = list(ALGORITHMS) if algorithm == "all" else [algorithm]
    answers = {name: allocate(topology, units, name, seconds) for name in chosen}
    if as_json:
        console.print_json(
            {
                "throughput": throughput(topology),
                "allocations": {name: _as_json(answer) for name, answer in answers.items()},
            }
        )
    else:
        _print(topology, units, answers)


def _as_json(answer: Allocation) -> dict[str, Any]:
    proven = {} if answer.gap is None else {"gap": answer.gap}
    return {"units": dict(answer.units), "throughput": answer.throughput, "gain": answer.gain, **proven}


def _print(topology: MeasuredTopology, units: int, answers: dict[str, Allocation]) -> None:
    from rheostat.allocate import throughput

    now = throughput(topology)
    title = f"{topology.name}: {units} units; now {console.number(now, 'rows/s')}"
    table = console.table(title, "algorithm", "units to add", "throughput", "gain", "proven within", text=2)
    for name, answer in answers.items():
        units_added = ", ".join(f"{component}:{added}" for component, added in answer.units.items())
        proven = "" if answer.gap is None else "exact" if answer.gap == 0 else f"{100 * answer.gap:.2f} %"
        table.add_row(
            name,
            units_added or "none",
            console.number(answer.throughput),
            f"+{console.number(answer.gain)}",
            proven,
        )
    console.out.print(table)
