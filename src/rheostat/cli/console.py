"""Output of all commands: results on stdout, one-line errors on stderr, plain JSON."""

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


# Characters that a terminal executes instead of showing: control characters, and marks that reorder text.
_UNSAFE = dict.fromkeys(
    [*range(0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)], "?"
) | {ord(kept): kept for kept in "\n\t"}


def harmless(text: str) -> str:
    r"""Return the text without characters that a terminal would execute.

    >>> harmless("red \x1b[31m\x9b31m\n")
    'red ?[31m?31m\n'
    """
    return text.translate(_UNSAFE)


class _Console(Console):
    """Prints text as it is: a name in [brackets] is a name, not markup."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False, markup=False, emoji=False)

    def render_str(self, text: str, **how: Any) -> "Text":
        """Replace unsafe characters before the width is measured."""
        return super().render_str(harmless(text), **how)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """Replace unsafe characters in everything that is shown, such as names and a policy's reasons."""
        for segment in super().render(renderable, options):
            if segment.control:  # from Rich itself, such as moving the cursor
                yield segment
            else:
                yield Segment(harmless(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # main handles this for every command


out = _Console()
err = _Console(stderr=True)


def fail(message: str) -> None:
    """Print an error as one line of safe characters."""
    line = " ".join(message.split())
    print("rheostat: " + "".join(c if c.isprintable() else "?" for c in line), file=sys.stderr)


def print_json(value: Any) -> None:
    """Print a result as strict JSON: a missing or infinite number is null."""
    print(json.dumps(_finite(value), indent=2, sort_keys=False, allow_nan=False))


@contextmanager
def progress() -> Iterator[Callable[[str], Callable[[float], None]]]:
    """Show progress bars on stderr; yields a function that starts a bar and returns how to advance it."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bars:

        def start(name: str) -> Callable[[float], None]:
            job = bars.add_task(name, total=1.0)
            return lambda fraction: bars.update(job, completed=fraction)

        yield start


def table(title: str, *columns: str, text: int = 1) -> "Table":
    """Create a table whose first `text` columns hold text and whose others hold numbers."""
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
    """Write a count with its noun.

    >>> count(1, "node"), count(2, "node")
    ('1 node', '2 nodes')
    """
    return f"{number:,} {thing}" + ("" if number == 1 else "s")


def number(value: float | None, unit: str = "", digits: int = 3) -> str:
    """Format a number for people.

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
