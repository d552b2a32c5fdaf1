"""Rates in a topology: the demand on every operator that follows from the load at the sources."""

from collections.abc import Mapping

from rheostat.model.errors import UserError
from rheostat.model.topology import Topology

MAX_RATE = 1e15  # rows/s; above this, floating point no longer counts rows exactly
MAX_CORES = 1e9
StreamRates = Mapping[tuple[str, str], float]  # (upstream, downstream) -> rows per row processed upstream


def stated_selectivity(topology: Topology) -> dict[tuple[str, str], float]:
    """The σ of every stream as the topology states it."""
    return {(s.upstream, s.downstream): s.rows_per_row for s in topology.streams}


def demand(
    topology: Topology, load: Mapping[str, float], selectivity: StreamRates | None = None
) -> dict[str, float]:
    """Propagate the load at the sources to every operator, in rows/s.

    >>> from rheostat.model.topology import Operator, Stream
    >>> words = Topology("w", (Operator("lines"), Operator("count")), (Stream("lines", "count", 8.0),))
    >>> demand(words, {"lines": 100.0})
    {'lines': 100.0, 'count': 800.0}
    """
    sigma = stated_selectivity(topology) if selectivity is None else selectivity
    rates: dict[str, float] = {}
    for name in topology.order:
        incoming = topology.inputs[name]
        rates[name] = (
            sum(rates[s.upstream] * sigma[(s.upstream, name)] for s in incoming)
            if incoming
            else load.get(name, 0.0)
        )
    return {name: rates[name] for name in topology.names}


def nominal_mix(topology: Topology) -> dict[str, float]:
    """Each source's share of the total load: as stated, or equal if any stated load is missing."""
    loads = [topology.operator(name).load for name in topology.sources]
    if any(load is None for load in loads) or not sum(load or 0.0 for load in loads):
        return {name: 1 / len(topology.sources) for name in topology.sources}
    total = sum(load or 0.0 for load in loads)
    return {name: (load or 0.0) / total for name, load in zip(topology.sources, loads, strict=True)}


def visits(topology: Topology) -> dict[str, float]:
    """Rows at each operator per row offered to the application as a whole."""
    return demand(topology, nominal_mix(topology))


def check_rates(topology: Topology, rates: Mapping[str, float]) -> None:
    """Refuse loads, selectivities and costs that are finite but have too large a product."""
    for operator in topology.operators:
        rate = rates[operator.name]
        if not rate <= MAX_RATE:
            raise UserError(
                f"operator {operator.name!r} would get {rate:g} rows/s; {MAX_RATE:g} is the limit"
            )
        if not rate * operator.cost_seconds <= MAX_CORES:
            cores = rate * operator.cost_seconds
            raise UserError(
                f"operator {operator.name!r} would need {cores:g} cores; {MAX_CORES:g} is the limit"
            )
