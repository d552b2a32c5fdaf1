"""Improves an allocation by moving single units, when the solver runs out of time."""

import numpy as np

from rheostat.allocate.compute_model import TOLERANCE, ComputeModel, Ints

ROUNDS = 30
MAX_CELLS = 10_000_000  # moves × components that a round may evaluate


def improve_units(model: ComputeModel, added: Ints, units: int) -> Ints:
    """Take the best move of one unit, or the best use of a spare unit, as long as this raises throughput."""
    best = float(model.throughput(added))
    takers = np.flatnonzero(model.unit_rate > 0)
    for _ in range(ROUNDS):
        givers = np.flatnonzero(added > 0)
        if added.sum() < units:
            givers = np.append(givers, -1)  # no giver: a unit is spare
        if givers.size * takers.size * model.size > MAX_CELLS:
            return added
        giver, taker = (side.ravel() for side in np.meshgrid(givers, takers, indexing="ij"))
        moves = np.repeat(added[:, None], giver.size, axis=1)
        column = np.arange(giver.size)
        moves[giver[giver >= 0], column[giver >= 0]] -= 1
        moves[taker, column] += 1
        throughput = model.throughput(moves)
        chosen = int(np.argmax(throughput))
        if throughput[chosen] <= best * (1 + TOLERANCE):
            return added
        best, added = float(throughput[chosen]), moves[:, chosen].copy()
    return added
