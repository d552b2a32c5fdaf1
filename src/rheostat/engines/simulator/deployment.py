"""A configuration as arrays: what runs where, and how much CPU it can use."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rheostat.engines.simulator.settings import Settings
from rheostat.model.node import Node
from rheostat.model.topology import Topology

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


def totals(index: Ints, amounts: Floats, size: int) -> Floats:
    """Add up the amounts by index."""
    return np.bincount(index, weights=amounts, minlength=size).astype(np.float64, copy=False)


@dataclass(frozen=True, slots=True)
class Deployment:
    """Groups of instances: `count[g]` instances of operator `operator[g]` on node `node[g]`."""

    parallelism: Floats  # per operator
    operator: Ints  # per group
    node: Ints
    count: Floats
    room: Floats  # per node: cores left for instances
    cores: Floats
    slots: int  # of all executors


def deploy(
    topology: Topology,
    placed: Mapping[str, Mapping[str, int]],
    nodes: tuple[Node, ...],
    executors: int,
    settings: Settings,
) -> Deployment:
    """Turn a placement into arrays."""
    index = {name: i for i, name in enumerate(topology.names)}
    rows = [
        (index[operator], number, count)
        for number, node in enumerate(nodes)
        for operator, count in placed.get(node.name, {}).items()
    ]
    operator = np.array([row[0] for row in rows], dtype=np.intp)
    count = np.array([row[2] for row in rows], dtype=np.float64)
    per_operator = totals(operator, count, len(index))
    cores = np.array([node.kind.cores for node in nodes])
    spare = np.array([max(0, node.kind.executors - 1) * settings.executor_idle_cores for node in nodes])
    room = np.array([settings.overhead.room(node.kind.cores) for node in nodes]) - spare
    slots = sum(node.kind.slots for node in nodes)
    per_executor = slots / sum(node.kind.executors for node in nodes)
    return Deployment(
        parallelism=per_operator,
        operator=operator,
        node=np.array([row[1] for row in rows], dtype=np.intp),
        count=count,
        room=np.maximum(room, 1e-9),
        cores=cores,
        slots=int(min(slots, executors * per_executor)),
    )
