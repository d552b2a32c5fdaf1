"""The combined allocator (P4, §5.2.8): Stela and the predictive allocator fail in different topologies."""

from rheostat.allocate.allocation import Allocation, check_units, settle
from rheostat.allocate.compute_model import TOLERANCE, ComputeModel, Ints
from rheostat.allocate.measured import MeasuredTopology
from rheostat.allocate.predictive import predictive_units
from rheostat.allocate.stela import stela_units


def combined(topology: MeasuredTopology, units: int) -> Allocation:
    """Take the better of Stela's and the predictive allocation; the predictive one if they are equal."""
    check_units(units)
    model = ComputeModel(topology)
    return settle(model, combined_units(model, units))


def combined_units(model: ComputeModel, units: int) -> Ints:
    """The better allocation as an array; never worse than Stela's."""
    serial, batched = stela_units(model, units), predictive_units(model, units)
    better = float(model.throughput(serial)) > float(model.throughput(batched)) * (1 + TOLERANCE)
    return serial if better else batched
