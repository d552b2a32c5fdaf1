"""`rheostat explain`: one decision in plain sentences, with the numbers behind it and what came of it."""

from pathlib import Path
from typing import Annotated

import typer

from rheostat.cli import options


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("explain", epilog="Example: rheostat explain 42 --journal simulation/journal.sqlite")(
        _explain
    )


def _explain(
    decision: Annotated[
        int | None,
        typer.Argument(help="A turn's number, as `rheostat status` shows it; else the latest change."),
    ] = None,
    journal: options.JournalOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Say why a decision was made, what was done and what came of it."""
    from rheostat.cli import explain_page, journals

    explain_page.show(journals.find(journal, Path.cwd()), decision, as_json)
