"""Matplotlib, which is only used to draw into files."""

import os
from types import ModuleType
from typing import Any

BACKEND = "MPLBACKEND"


def matplotlib() -> ModuleType:
    """Return the library. MPLBACKEND is ignored: it is meant for windows, and a wrong value is an error."""
    given = os.environ.pop(BACKEND, None)
    try:
        import matplotlib as mpl
    finally:
        if given is not None:
            os.environ[BACKEND] = given
    mpl.use("Agg")
    return mpl


def pyplot() -> Any:
    """Return the functions that make figures."""
    matplotlib()
    from matplotlib import pyplot as plt

    return plt
