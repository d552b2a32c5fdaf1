"""`rheostat topology`: check a topology file and draw it with its rates."""

from typing import Annotated

import typer

from rheostat.model.errors import UserError


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("topology", epilog="Example: rheostat topology wordcount --load 500")(_topology)


def _topology(
    file: Annotated[str, typer.Argument(help="A JSON or YAML file, or the name of a built-in topology.")],
    load: Annotated[
        float | None, typer.Option("--load", help="Rows/s of all sources together (default: from the file).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Check a topology and draw it with the rates that a load causes."""
    if load is not None and not 0 <= load < float("inf"):
        raise UserError("--load must be a finite number of at least 0")
    from rheostat.cli import topology_page

    topology_page.show(file, load, as_json)
