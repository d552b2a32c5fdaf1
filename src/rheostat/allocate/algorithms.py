"""The allocators by name."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from rheostat.allocate.allocation import Allocation
from rheostat.allocate.combined import combined
from rheostat.allocate.measured import MeasuredTopology
from rheostat.allocate.optimal import optimal
from rheostat.allocate.predictive import predictive
from rheostat.allocate.stela import stela
from rheostat.model.errors import UserError, nearest

ALGORITHMS: Mapping[str, Callable[[MeasuredTopology, int], Allocation]] = MappingProxyType(
    {"stela": stela, "predictive": predictive, "combined": combined, "optimal": optimal}
)


def allocate(
    topology: MeasuredTopology, units: int, algorithm: str, seconds: float | None = None
) -> Allocation:
    """Allocate `units` units with the named algorithm; `seconds` limits the search of `optimal`."""
    if algorithm not in ALGORITHMS:
        raise UserError(f"there is no algorithm {algorithm!r}{nearest(algorithm, ALGORITHMS)}")
    if algorithm == "optimal":
        return optimal(topology, units, seconds)
    return ALGORITHMS[algorithm](topology, units)
