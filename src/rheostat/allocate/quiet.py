"""Keeps a C library's messages off standard output, where our JSON goes."""

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet_stdout() -> Iterator[None]:
    """Discard what compiled code prints; HiGHS 1.12 has a debugging line that no option turns off."""
    try:
        libc = ctypes.CDLL(None)
        libc.fflush(None)
        kept = os.dup(1)
    except (OSError, TypeError, AttributeError):  # no standard output, or no C library
        yield
        return
    if sys.stdout is not None:
        sys.stdout.flush()
    devnull = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(devnull, 1)
        yield
    finally:
        libc.fflush(None)  # while output is still discarded
        os.dup2(kept, 1)
        os.close(devnull)
        os.close(kept)
