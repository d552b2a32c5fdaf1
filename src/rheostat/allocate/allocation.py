"""The answer of every allocator: who gets how many units, and what that should bring."""

from collections.abc import Mapping
from dataclasses import dataclass

from rheostat.allocate.compute_model import ComputeModel, Ints
from rheostat.model.errors import UserError

MAX_UNITS_TO_GIVE = 10_000


@dataclass(frozen=True, slots=True)
class Allocation:
    """Units to add per component; the throughput is the compute model's, never a solver's."""

    units: Mapping[str, int]
    throughput: float
    gain: float
    gap: float | None = None  # how far the best allocation may be above this one at most; None: not known


def settle(model: ComputeModel, added: Ints, gap: float | None = None) -> Allocation:
    """Evaluate an allocation with the compute model."""
    after = float(model.throughput(added))
    return Allocation(model.named(added), after, after - float(model.throughput(model.nothing())), gap)


def check_units(units: int) -> None:
    """Refuse a number of units that nobody can mean.

    >>> check_units(-1)
    Traceback (most recent call last):
    rheostat.model.errors.UserError: units is -1; it must be between 0 and 10000
    """
    if not 0 <= units <= MAX_UNITS_TO_GIVE:
        raise UserError(f"units is {units}; it must be between 0 and {MAX_UNITS_TO_GIVE}")
