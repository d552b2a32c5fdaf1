"""Our own exact allocator: the highest throughput that K units allow, as a mixed-integer programme.

Variables: x_i, the units' worth of rows that component i processes, and n_i, the units it gets.
    maximise   sum over leaves of ratio_i rate_i x_i - epsilon sum n_i
    subject to x_i <= units_i + n_i, and for all but sources
               rate_i x_i <= sum over parents j of share_ji ratio_j rate_j x_j;   sum n_i <= K
The model says processed = min(input, capacity); the programme only says <= both. That is enough:
ratios and shares are not negative and surplus is dropped, so raising x_i to the minimum never
lowers anything downstream; hence some optimum attains every minimum, and the compute model, which
evaluates the resulting integers, gives at least the programme's value.

Where units share CPU, sum of cpu_i rate_i x_i <= cores is one more row. The programme may divide the CPU as
it likes, an operating system does not: so its value is a bound, and the gap says how far off we may be.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import block_array, csr_array, diags_array, eye_array

from rheostat.allocate.allocation import Allocation, check_units, settle
from rheostat.allocate.bounds import max_processed, useful_units
from rheostat.allocate.combined import combined_units
from rheostat.allocate.compute_model import TOLERANCE, ComputeModel, Ints
from rheostat.allocate.even import even_units
from rheostat.allocate.improve import improve_units
from rheostat.allocate.measured import MeasuredTopology
from rheostat.allocate.pipelines import pipeline_units
from rheostat.allocate.quiet import quiet_stdout

EXACT_SIZE = 500  # up to this many components (and units) the optimum is proven exactly
LARGE_GAP = 0.001  # above that, a proven gap of 0.1 % is enough
SECONDS, LARGE_SECONDS, LARGE_SIZE = 1.5, 45.0, 2000  # default search times
TIE = 1e-7  # relative; throughputs closer than this count as equal: then the fewest units win
SCALE = 1e6  # of the objective: the solver stops at an absolute gap of 1e-6


@dataclass(frozen=True, slots=True)
class _Solution:
    added: Ints
    bound: float  # no allocation gives more throughput than this


def optimal(topology: MeasuredTopology, units: int, seconds: float | None = None) -> Allocation:
    """Allocate at most `units` units for the highest throughput; `gap` says how much of that is proven.

    A gap of 0 is a proof. If the time runs out first, the best allocation so far is returned, and no
    allocation gives more than throughput × (1 + gap).

    >>> from rheostat.allocate.measured import Component
    >>> end = Component("c", max_rate=100)
    >>> middle = Component("b", max_rate=300, children={"c": 1})
    >>> line = MeasuredTopology("line", (Component("a", 300, source=True, children={"b": 1}), middle, end))
    >>> optimal(line, 4)
    Allocation(units={'c': 2}, throughput=300.0, gain=200.0, gap=0.0)
    """
    check_units(units)
    model = ComputeModel(topology)
    exact = pipeline_units(model, units)
    if exact is not None:
        return settle(model, even_units(model, _without_waste(model, exact)), 0.0)
    solution = _solve(model, units, seconds or _patience(model.size))
    added = solution.added
    if solution.bound > float(model.throughput(added)) * (1 + TIE):  # the solver ran out of time
        rivals = [added, combined_units(model, units), model.nothing()]
        added = improve_units(model, max(rivals, key=lambda rival: float(model.throughput(rival))), units)
    added = even_units(model, _without_waste(model, added))
    reached = float(model.throughput(added))
    gap = solution.bound / reached - 1 if reached > 0 else np.inf if solution.bound > 0 else 0.0
    return settle(model, added, 0.0 if gap <= 2 * TIE else gap)


def _patience(size: int) -> float:
    """Seconds to search: the answer for 200 components is due in 2 s, that for 2,000 in 60 s."""
    return SECONDS if size <= 200 else min(LARGE_SECONDS, max(SECONDS, LARGE_SECONDS * size / LARGE_SIZE))


def _solve(model: ComputeModel, units: int, seconds: float) -> _Solution:
    """Solve the programme; its objective value serves only as a bound."""
    processed = max_processed(model, units)
    max_added = useful_units(model, processed, units)
    weight = np.where(model.leaf, model.ratio * model.unit_rate, 0.0)
    now = float(model.throughput(model.nothing()))
    if not max_added.any():
        return _Solution(model.nothing(), now)
    scale = SCALE / (now or weight.max())
    epsilon = TIE * SCALE / units
    small = max(model.size, units) <= EXACT_SIZE
    with quiet_stdout():
        result = milp(
            np.concatenate([-scale * weight, np.full(model.size, epsilon)]),
            constraints=_constraints(model, units),
            integrality=np.repeat([0, 1], model.size),
            bounds=Bounds(0, np.concatenate([processed * (1 + TOLERANCE), max_added])),
            options={"mip_rel_gap": 0.0 if small else 0.95 * LARGE_GAP, "time_limit": seconds},
        )
    added = model.nothing() if result.x is None else np.rint(result.x[model.size :]).astype(np.int64)
    dual = result.mip_dual_bound
    bound = np.inf if dual is None or not np.isfinite(dual) else (epsilon * units - dual) / scale
    return _Solution(added, float(bound))


def _constraints(model: ComputeModel, units: int) -> LinearConstraint:
    """The rows of the programme, sparse; each flow is in units of the component that receives it."""
    rate = np.where(model.unit_rate > 0, model.unit_rate, 1.0)
    fed = np.flatnonzero(~model.source)
    received = diags_array(1 / rate) @ model.shares @ diags_array(model.ratio * model.unit_rate)
    whole: Any = eye_array(model.size, format="csr") - received
    flow = whole.tocsr()[fed]
    identity = eye_array(model.size)
    budget = csr_array(np.ones((1, model.size)))
    blocks: list[list[Any]] = [[flow, None], [identity, -identity], [None, budget]]
    limits = [np.zeros(fed.size), model.units, np.array([float(units)])]
    if model.cores is not None:
        blocks.append([csr_array((model.cpu_seconds * model.unit_rate)[None, :]), None])
        limits.append(np.array([model.cores]))
    rows: Any = block_array(blocks, format="csr")
    return LinearConstraint(csr_array(rows, dtype=np.float64), -np.inf, np.concatenate(limits))


def _without_waste(model: ComputeModel, added: Ints) -> Ints:
    """Remove every unit that adds no throughput, in case the solver stopped before it did so."""
    kept = added.copy()
    target = float(model.throughput(kept)) * (1 - TOLERANCE)
    rates = model.rates(kept)
    rate = np.where(model.unit_rate > 0, model.unit_rate, np.inf)
    idle = np.floor((rates.capacity - rates.processed) / rate + 1e-9)  # ignore rounding errors
    kept -= np.minimum(kept, idle.astype(np.int64))
    return kept if float(model.throughput(kept)) >= target else added
