"""`rheostat status`: what a run is doing and what it did last, from its journal alone."""

from pathlib import Path
from typing import Annotated

import typer

from rheostat.cli import options


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("status", epilog="Example: rheostat status --journal simulation/journal.sqlite")(_status)


def _status(
    journal: options.JournalOption = None,
    last: Annotated[
        int, typer.Option("--last", "-n", min=0, max=10_000, help="Number of changes to show.")
    ] = 5,
    as_json: options.JsonOption = False,
) -> None:
    """Show how a run is doing, and what was changed last and why."""
    from rheostat.cli import journals, status_page

    status_page.show(journals.find_journal(journal, Path.cwd()), last, as_json)
