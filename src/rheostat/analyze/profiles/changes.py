"""What changes cost: for how long a rescale paused the application, a rebalance and new nodes took."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

LEAST = 5  # changes of a kind, before state and load are told apart
GIGABYTE = 1e9
KINDS = ("rescale", "node start", "rebalance")


@dataclass(frozen=True, slots=True)
class Change:
    """One change that was applied."""

    kind: str
    seconds: float
    state_bytes: float
    load: float  # rows/s


@dataclass(frozen=True, slots=True)
class ChangeCost:
    """Seconds of one kind of change; neither state nor load can make it cheaper.

    >>> ChangeCost(changes=9, fixed=2.0, per_gigabyte=10.0, per_thousand_rows=0.0).seconds(2e9, 500)
    22.0
    """

    changes: int
    fixed: float
    per_gigabyte: float
    per_thousand_rows: float

    def seconds(self, state_bytes: float, load: float) -> float:
        """What such a change would take."""
        by_state = self.per_gigabyte * state_bytes / GIGABYTE
        return self.fixed + by_state + self.per_thousand_rows * load / 1000


def change_costs(changes: Sequence[Change]) -> Mapping[str, ChangeCost]:
    """The cost of each kind that occurred."""
    by_kind = {kind: [change for change in changes if change.kind == kind] for kind in KINDS}
    return {kind: _cost(own) for kind, own in by_kind.items() if own}


def _cost(changes: Sequence[Change]) -> ChangeCost:
    """Least squares where there are enough changes, else the median."""
    seconds = np.array([change.seconds for change in changes])
    if len(changes) < LEAST:
        return ChangeCost(len(changes), float(np.median(seconds)), 0.0, 0.0)
    about = [(1.0, change.state_bytes / GIGABYTE, change.load / 1000) for change in changes]
    fixed, by_state, by_load = nnls(np.array(about), seconds)[0]
    return ChangeCost(len(changes), float(fixed), float(by_state), float(by_load))
