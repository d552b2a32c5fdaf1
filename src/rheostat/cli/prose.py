"""Sentences in the terminal: wrapped to its width, indented, and without unsafe characters."""

import re
import textwrap
from collections.abc import Iterable

from rich.table import Table
from rich.text import Text

from rheostat.cli import console

# Spaces at which no line may break: in `1 -> 2` and between a number and its unit.
_TOGETHER = re.compile(r" (?=->)| (?=\d+ ->)|(?<=->) |(?<=\d) (?=(?:s|h|rows/s|rows|[kMGT]?B|%)(?:\W|$))")


def plain(text: str) -> str:
    r"""Return a text of a journal, which may be from anyone, as one safe line.

    >>> plain("two\nlines \x1b[31m")
    'two lines ?[31m'
    """
    return "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))


def heading(text: str) -> None:
    """Print a heading."""
    console.out.print()
    console.out.print(Text(plain(text), "bold"), soft_wrap=True)


def say(text: str, first: str = "  ", rest: str = "  ") -> None:
    """Print a paragraph; `first` and `rest` indent its first line and the others."""
    joined = _TOGETHER.sub("\u00a0", plain(text))
    lines = textwrap.wrap(
        joined, console.out.width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False
    )
    console.out.print("\n".join(lines).replace("\u00a0", " "), soft_wrap=True)


def items(texts: Iterable[str]) -> None:
    """Print a bulleted list."""
    for text in texts:
        say(text, "  - ", "    ")


def show(table: Table) -> None:
    """Print a table without trailing spaces."""
    with console.out.capture() as captured:
        console.out.print(table)
    lines = captured.get().splitlines()
    console.out.print(Text.from_ansi("\n".join(line.rstrip() for line in lines)), soft_wrap=True)
