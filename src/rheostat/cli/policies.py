"""`rheostat policies`: the available policies."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Annotated

import typer

from rheostat.cli import console

if TYPE_CHECKING:
    from rheostat.policies.base import Policy


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("policies", epilog="Example: rheostat policies elysium")(_policies)


def _policies(
    name: Annotated[str | None, typer.Argument(help="Show this policy and its parameters.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """List the policies, including your own. With a name: show one with its parameters."""
    from rheostat.policies.registry import find, installed

    chosen, broken = installed() if name is None else ({name: find(name)}, {})
    for why in broken.values():
        console.fail(f"skipped: {why}")
    if as_json:
        console.print_json([_as_json(word, kind) for word, kind in chosen.items()])
        return
    if name is not None:
        _show(name, chosen[name])
        return
    table = console.table("Policies", "name", "scales", "kind", "from", text=4)
    for word, kind in chosen.items():
        table.add_row(word, kind.info.level, kind.info.kind, kind.info.source)
    console.out.print(table)
    console.out.print("\ntry: rheostat compare -t wordcount -c day -p static,elysium")


def _show(name: str, kind: type[Policy]) -> None:
    from rheostat.policies.registry import parameters

    text = (inspect.getdoc(kind) or "").split(">>>")[0].strip()
    console.out.print(f"{name}: {kind.info.source}, {kind.info.kind}\n", style="bold")
    console.out.print(re.sub(r"(?<!\n)\n(?!\n)", " ", text))  # each paragraph as wide as the terminal
    table = console.table("\nParameters", "name", "default", text=1)
    for parameter, default in parameters(kind).items():
        table.add_row(parameter, str(default) if default != "" else "-")
    console.out.print(table)


def _as_json(name: str, kind: type[Policy]) -> dict[str, object]:
    from rheostat.policies.registry import parameters

    info = kind.info
    return {
        "name": name,
        "level": info.level,
        "kind": info.kind,
        "source": info.source,
        "parameters": parameters(kind),
    }
