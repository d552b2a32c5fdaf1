"""Topologies of any size for the benchmarks."""

from rheostat.model.configuration import Bounds
from rheostat.model.topology import Operator, Stream, Topology

BOUNDS = Bounds(1, 500)


def chain(size: int) -> Topology:
    """One operator after the other."""
    operators = tuple(Operator(f"o{i}", 0.0005, load=1000.0 if i == 0 else None) for i in range(size))
    return Topology("chain", operators, tuple(Stream(f"o{i}", f"o{i + 1}") for i in range(size - 1)))


def tree(size: int) -> Topology:
    """Every operator sends each row to one of three children."""
    operators = tuple(Operator(f"o{i}", 0.0005, load=1000.0 if i == 0 else None) for i in range(size))
    streams = tuple(Stream(f"o{(i - 1) // 3}", f"o{i}", 3.0, 1 / 3) for i in range(1, size))
    return Topology("tree", operators, streams)
