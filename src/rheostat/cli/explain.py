"""`rheostat explain`: one decision in plain sentences, with the numbers behind it and its effect."""

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
    turn: Annotated[
        int | None,
        typer.Argument(help="Number of a turn, as `rheostat status` shows it (default: the latest change)."),
    ] = None,
    journal: options.JournalOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Explain a decision: its reasons, what was done, and the effect."""
    from rheostat.cli import explain_page, journals

    explain_page.show(journals.find_journal(journal, Path.cwd()), turn, as_json)
