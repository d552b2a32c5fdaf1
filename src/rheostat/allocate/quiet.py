"""Keeps a C library's chatter off standard output, where our JSON goes."""

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet_stdout() -> Iterator[None]:
    """Send what compiled code prints to nowhere; HiGHS 1.12 has a debugging line that no option turns off."""
    try:
        libc = ctypes.CDLL(None)
        libc.fflush(None)
        kept = os.dup(1)
    except (OSError, TypeError, AttributeError):  # no standard output, or no C library to be asked
        yield
        return
    if sys.stdout is not None:
        sys.stdout.flush()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        yield
    finally:
        libc.fflush(None)  # while it still goes nowhere
        os.dup2(kept, 1)
        os.close(nowhere)
        os.close(kept)
