"""`rheostat apps`: the applications that come with Rheostat, which `rheostat run` takes by name."""

import ast
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from rheostat.cli import console
from rheostat.model.errors import UserError, nearest

SCRIPT = "app.py"


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("apps", epilog="Example: rheostat run wordcount -- sine:low=1000:high=20000:period=5m")(_apps)


def _apps(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """List the applications that come with Rheostat."""
    known = {name: about(script) for name, script in applications().items()}
    if as_json:
        console.print_json(known)
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_header=False)
    for name, text in known.items():
        table.add_row(name, text)
    console.out.print(table)


def applications() -> dict[str, Path]:
    """The scripts of the applications, by name."""
    folder = Path(str(files("rheostat.apps")))
    return {script.parent.name: script for script in sorted(folder.glob(f"*/{SCRIPT}"))}


def about(script: Path) -> str:
    """What a script says of itself, in a line; it is not run for that."""
    told = ast.get_docstring(ast.parse(script.read_text())) or ""
    return told.partition("\n")[0]


def find(word: str) -> Path:
    """A user's script, or one that comes with Rheostat."""
    known = applications()
    if word in known and not Path(word).is_file():
        return known[word]
    if not word.endswith(".py") and not Path(word).exists():
        raise UserError(f"there is no script and no application {word!r}{nearest(word, known)}")
    return Path(word)
