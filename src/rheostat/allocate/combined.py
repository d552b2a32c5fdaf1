"""The combined allocator (P4, §5.2.8): Stela and the predictive allocator fail in different topologies."""

from rheostat.allocate.allocation import Allocation, check_units, settle_both
from rheostat.allocate.compute_model import TOLERANCE, ComputeModel, Ints
from rheostat.allocate.measured import MeasuredTopology
from rheostat.allocate.predictive import both_outputs, predictive_units
from rheostat.allocate.stela import stela_units


def combined(topology: MeasuredTopology, units: int) -> Allocation:
    """Take the better of Stela's and the predictive allocation; the predictive one if they are equal.

    Only the residual output competes with Stela's; the optimal one is the predictive allocator's, as in
    Algorithm 4.
    """
    check_units(units)
    model = ComputeModel(topology)
    optimal, residual = both_outputs(model, units)
    return settle_both(model, optimal, _better(model, units, residual))


def combined_units(model: ComputeModel, units: int) -> Ints:
    """The better allocation as an array; never worse than Stela's."""
    return _better(model, units, predictive_units(model, units))


def _better(model: ComputeModel, units: int, batched: Ints) -> Ints:
    serial = stela_units(model, units)
    better = float(model.throughput(serial)) > float(model.throughput(batched)) * (1 + TOLERANCE)
    return serial if better else batched
