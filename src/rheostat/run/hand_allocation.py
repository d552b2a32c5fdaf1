"""Hands an allocation of P4 to a run that is under way, as a plan by hand."""

from pathlib import Path

from rheostat.allocate import Allocation
from rheostat.allocate.compute_model import TOLERANCE
from rheostat.analyze.leaves import LEAF_THROUGHPUT
from rheostat.journal.measured import MeasuredRun
from rheostat.run.control_client import propose, who
from rheostat.run.control_messages import PlanAnswer, PlanRequest


def apply_allocation(
    folder: Path, run: MeasuredRun, allocation: Allocation, algorithm: str
) -> PlanAnswer | None:
    """Ask for the present parallelism and the allocation's units; None if they would gain nothing."""
    if allocation.gain <= allocation.throughput * TOLERANCE:
        return None
    units = sum(allocation.units.values())
    target = {name: run.parallelism[name] + added for name, added in allocation.units.items()}
    words = f"{algorithm} allocates {units} more {'unit' if units == 1 else 'units'}"
    request = PlanRequest(target, words, who(), {LEAF_THROUGHPUT: allocation.throughput})
    return propose(folder, request)
