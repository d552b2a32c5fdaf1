"""Matplotlib, which we only ever use to draw into files."""

import os
from types import ModuleType
from typing import Any

BACKEND = "MPLBACKEND"


def matplotlib() -> ModuleType:
    """The library, whatever MPLBACKEND says: a user's choice is for windows, and a wrong one is an error."""
    given = os.environ.pop(BACKEND, None)
    try:
        import matplotlib as mpl
    finally:
        if given is not None:
            os.environ[BACKEND] = given
    mpl.use("Agg")
    return mpl


def pyplot() -> Any:
    """Its functions for figures."""
    matplotlib()
    from matplotlib import pyplot as plt

    return plt
