"""Spark's errors in one readable line."""

import re
from textwrap import shorten

MOST_LETTERS = 300
_CLASS = re.compile(r"^(?:\w+\.)+\w+: (?=\[)")  # where Spark's own name of the error follows


def plain(error: Exception) -> str:
    """A Spark error in one line, without its stack, its plan, its position in the SQL and its ids."""
    java = str(error).partition("\n: ")  # Py4J puts the call first
    text = (java[2] or java[0]).partition("\n\tat ")[0]
    message = " ".join((_python_error(text) or text).split())
    message = message.partition("terminated with exception: ")[2] or message
    for mark in (" SQLSTATE", " == SQL", " === Streaming Query"):
        message = message.partition(mark)[0]
    return shorten(_CLASS.sub("", message), MOST_LETTERS, placeholder=" ...")


def _python_error(text: str) -> str | None:
    """The last line of a Python traceback, if there is one: the user's function failed, not Spark."""
    below = text.rpartition("Traceback (most recent call last):\n")
    lines = below[2].splitlines() if below[1] else []
    return next((line for line in lines if line and not line[0].isspace()), None)
