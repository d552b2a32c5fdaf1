"""`rheostat apps`: the built-in applications, which `rheostat run` accepts by name."""

from typing import Annotated

import typer

from rheostat.cli import console


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("apps", epilog="Example: rheostat run wordcount -- sine:low=1000:high=20000:period=5m")(_apps)


def _apps(
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """List the built-in applications."""
    from rheostat.apps.shipped import first_line, shipped_scripts

    apps = {name: first_line(script) for name, script in shipped_scripts().items()}
    if as_json:
        console.print_json(apps)
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_header=False)
    for name, text in apps.items():
        table.add_row(name, text)
    console.out.print(table)
