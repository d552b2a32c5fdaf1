"""Decides which instance runs on which node."""

from collections.abc import Iterable, Mapping

from rheostat.model.decision import Placement
from rheostat.model.node import Node

Placed = dict[str, dict[str, int]]  # node -> operator -> instances, nodes oldest first


def place(
    before: Mapping[str, Mapping[str, int]],
    parallelism: Mapping[str, int],
    nodes: Iterable[Node],
    wishes: Placement,
    hidden: frozenset[str] = frozenset(),
    weights: Mapping[str, float] | None = None,
) -> Placed:
    """Place all instances: evenly from scratch or, if the plan says so, without moving those that run."""
    open_nodes = [node for node in nodes if node.name not in wishes.remove]
    if wishes.keep:
        even = dict.fromkeys(parallelism, 1.0)
        return _keep(before, parallelism, open_nodes, wishes, hidden, weights or even)
    return _even(parallelism, open_nodes)


def _even(parallelism: Mapping[str, int], nodes: list[Node]) -> Placed:
    """Deal instances to nodes in turn, more to larger nodes: Storm's even scheduler, Spark's spreading."""
    placed: Placed = {node.name: {} for node in nodes}
    turns = [node.name for node in nodes]
    max_slots = max(node.kind.slots for node in nodes)
    if any(node.kind.slots != max_slots for node in nodes):
        turns = [node.name for turn in range(max_slots) for node in nodes if node.kind.slots > turn]
    dealt = 0
    for operator, count in parallelism.items():
        for _ in range(count):
            here = placed[turns[dealt % len(turns)]]
            here[operator] = here.get(operator, 0) + 1
            dealt += 1
    return placed


def _keep(
    before: Mapping[str, Mapping[str, int]],
    parallelism: Mapping[str, int],
    nodes: list[Node],
    wishes: Placement,
    hidden: frozenset[str],
    weights: Mapping[str, float],  # CPU of one instance
) -> Placed:
    """Scale-out moves nothing; scale-in ends the requested instances, or else the newest (LIFO).

    A new instance goes to the node with the least CPU in use, if possible with a free slot.
    """
    placed: Placed = {node.name: dict(before.get(node.name, {})) for node in nodes}
    for operator, node_name in wishes.take:
        if placed.get(node_name, {}).get(operator, 0) > 0:
            _change(placed[node_name], operator, -1)
    for operator, node_name in wishes.put:
        if node_name in placed:
            _change(placed[node_name], operator, +1)
    cores = {node.name: node.kind.cores for node in nodes}
    free = {node.name: node.kind.slots - sum(placed[node.name].values()) for node in nodes}
    used = {name: sum(weights[o] * count for o, count in here.items()) for name, here in placed.items()}
    counts = {operator: sum(here.get(operator, 0) for here in placed.values()) for operator in parallelism}
    for operator, wanted in parallelism.items():
        for name in reversed(placed):
            while counts[operator] > wanted and placed[name].get(operator, 0) > 0:
                _change(placed[name], operator, -1)
                counts[operator] -= 1
                used[name] -= weights[operator]
                free[name] += 1
        while counts[operator] < wanted:
            visible = [name for name in placed if name not in hidden] or list(placed)
            least = min(visible, key=lambda name: (free[name] <= 0, used[name] / cores[name]))
            _change(placed[least], operator, +1)
            counts[operator] += 1
            used[least] += weights[operator]
            free[least] -= 1
    return placed


def _change(here: dict[str, int], operator: str, by: int) -> None:
    here[operator] = here.get(operator, 0) + by
    if here[operator] == 0:
        del here[operator]
