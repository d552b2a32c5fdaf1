"""How every command talks: results on stdout, one-line errors on stderr, JSON without decoration."""

import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text


# What a terminal obeys instead of showing it: control characters, and marks that reorder text.
_OBEYED = dict.fromkeys(
    [*range(0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)], "?"
) | {ord(kept): kept for kept in "\n\t"}


def harmless(text: str) -> str:
    r"""A text that a terminal only shows.

    >>> harmless("red \x1b[31m\x9b31m\n")
    'red ?[31m?31m\n'
    """
    return text.translate(_OBEYED)


class _Console(Console):
    """Prints what it is given: a name with [brackets] is a name, not markup."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False, markup=False, emoji=False)

    def render_str(self, text: str, **how: Any) -> "Text":
        """Replace what a terminal would obey before it is measured."""
        return super().render_str(harmless(text), **how)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """Everything that is shown passes here: a policy's words, names and titles among it."""
        for segment in super().render(renderable, options):
            if segment.control:  # Rich's own, such as moving the cursor
                yield segment
            else:
                yield Segment(harmless(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # main decides what that means, for every command alike


out = _Console()
err = _Console(stderr=True)


def fail(message: str) -> None:
    """Print one line about a mistake, without what a terminal would obey."""
    line = " ".join(message.split())
    print("rheostat: " + "".join(c if c.isprintable() else "?" for c in line), file=sys.stderr)


def print_json(value: Any) -> None:
    """Print a result for programs: strict JSON, so a missing or infinite number is null."""
    print(json.dumps(_finite(value), indent=2, sort_keys=False, allow_nan=False))


@contextmanager
def progress() -> Iterator[Callable[[str], Callable[[float], None]]]:
    """Show a bar per job on stderr; a job is started by name and then told the part that is done."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bars:

        def start(name: str) -> Callable[[float], None]:
            job = bars.add_task(name, total=1.0)
            return lambda part: bars.update(job, completed=part)

        yield start


def table(title: str, *columns: str, text: int = 1) -> "Table":
    """Make a table whose first `text` columns are words and whose others are numbers."""
    from rich.table import Table

    made = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        header_style="bold",
        box=None,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for index, column in enumerate(columns):
        words = index < text
        made.add_column(column, justify="left" if words else "right", overflow="fold", no_wrap=not words)
    return made


def count(number: int, thing: str) -> str:
    """Write how many there are.

    >>> count(1, "node"), count(2, "node")
    ('1 node', '2 nodes')
    """
    return f"{number:,} {thing}" + ("" if number == 1 else "s")


def number(value: float | None, unit: str = "", digits: int = 3) -> str:
    """Write a number the way people read it.

    >>> number(1234.5678), number(0.5), number(None), number(0.25, "%")
    ('1,235', '0.5', '-', '25 %')
    """
    if value is None or not math.isfinite(value):
        return "-"
    if unit == "%":
        return f"{100 * value:.0f} %"
    text = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.{digits}g}"
    return f"{text} {unit}".strip()


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
