"""What instances get when they share the CPU of their nodes, of which P4's compute model knows nothing.

An operating system divides CPU among busy threads evenly, and what a thread does not need is left to the
others. So there is one level: instances that would use more get that much, all others stay below it. The
higher it is, the more rows flow and the more CPU they take; so it is the level that uses up the cores.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

HALVINGS = 50  # of the interval in which the level lies: to the precision of a float


def fair_level(used: Callable[[Floats], Floats], highest: float, cores: float) -> Floats:
    """The highest level at which no more than the cores are used, infinite if they are enough for all.

    `used` grows with the level; it may look at several allocations at once, each with a level of its own.
    Three instances would use 0.2, 0.7 and 1.0 of a core that they share. The first gets what it needs:

    >>> wanted = np.array([0.2, 0.7, 1.0])
    >>> fair_level(lambda level: np.minimum(wanted, level).sum(), highest=1.0, cores=1.0)
    array(0.4)
    """
    top = used(np.asarray(highest))
    low, high = np.zeros(np.shape(top)), np.full(np.shape(top), highest)
    if np.all(top <= cores):
        return np.full(np.shape(top), np.inf)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        fits = used(middle) <= cores
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    return np.where(top <= cores, np.inf, low)
