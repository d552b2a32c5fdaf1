"""The few errors that a user can see.

RheostatError            anything we raise on purpose; one line that says what to do next
└── UserError            a mistake in the user's input: exit code 2, nothing was changed
    └── FileError        ... in a file, which the message names
"""

from collections.abc import Iterable
from difflib import get_close_matches


class RheostatError(Exception):
    """Anything Rheostat raises on purpose."""


class UserError(RheostatError):
    """A mistake in the user's input; the command ends with exit code 2 and changes nothing."""


class FileError(UserError):
    """A mistake in a file that the user gave."""


def nearest(word: str, known: Iterable[str]) -> str:
    """Name the closest known word, as the tail of an error message.

    >>> nearest("cuont", ["split", "count"])
    "; did you mean 'count'?"
    >>> nearest("zebra", ["split", "count"])
    '; known are count, split'
    """
    options = sorted(known)
    close = get_close_matches(word, options, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; known are {', '.join(options[:12])}" if options else ""
