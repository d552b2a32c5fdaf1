"""`rheostat status`: what a run is doing and did last, from its journal alone."""

from pathlib import Path
from typing import Annotated

import typer

from rheostat.cli import options


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("status", epilog="Example: rheostat status --journal simulation/journal.sqlite")(_status)


def _status(
    journal: options.JournalOption = None,
    last: Annotated[int, typer.Option("--last", "-n", min=0, max=10_000, help="How many changes.")] = 5,
    as_json: options.JsonOption = False,
) -> None:
    """Say what runs, how it fares, and what was changed last and why."""
    from rheostat.cli import journals, status_page

    status_page.show(journals.find(journal, Path.cwd()), last, as_json)
