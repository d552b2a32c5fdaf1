"""The result of every allocator: how many units each component gets, and the expected throughput."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from rheostat.allocate.compute_model import ComputeModel, Ints
from rheostat.model.errors import UserError

MAX_UNITS_TO_GIVE = 10_000


@dataclass(frozen=True, slots=True)
class Allocation:
    """Units to add per component; the throughput is computed by the compute model, never by a solver.

    Where it holds an `optimal` one, the two are P4's outputs (§5.2.6): its residualAllocationMap, which
    gives all units, and its optimalAllocationMap, which worsens no congestion and leaves units unspent.
    """

    units: Mapping[str, int]
    throughput: float
    gain: float
    gap: float | None = None  # how far above this one the best allocation can be at most; None: unknown
    optimal: "Allocation | None" = field(default=None, repr=False)


def settle(model: ComputeModel, added: Ints, gap: float | None = None) -> Allocation:
    """Evaluate an allocation with the compute model."""
    after = float(model.throughput(added))
    return Allocation(model.named(added), after, after - float(model.throughput(model.nothing())), gap)


def settle_both(model: ComputeModel, optimal: Ints, residual: Ints) -> Allocation:
    """Evaluate both outputs of P4 with the compute model."""
    return replace(settle(model, residual), optimal=settle(model, optimal))


def check_units(units: int) -> None:
    """Refuse a negative or an absurdly large number of units.

    >>> check_units(-1)
    Traceback (most recent call last):
    rheostat.model.errors.UserError: units is -1; it must be between 0 and 10000
    """
    if not 0 <= units <= MAX_UNITS_TO_GIVE:
        raise UserError(f"units is {units}; it must be between 0 and {MAX_UNITS_TO_GIVE}")
