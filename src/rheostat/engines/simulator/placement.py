"""Which node hosts which instance."""

from collections.abc import Iterable, Mapping

from rheostat.model.decision import Placement
from rheostat.model.node import Node

Hosts = dict[str, dict[str, int]]  # node -> operator -> instances, nodes oldest first


def place(
    before: Mapping[str, Mapping[str, int]],
    parallelism: Mapping[str, int],
    nodes: Iterable[Node],
    wishes: Placement,
    hidden: frozenset[str] = frozenset(),
    weights: Mapping[str, float] | None = None,
) -> Hosts:
    """Place all instances: anew and evenly, or, where the plan says so, leaving those that run alone."""
    open_nodes = [node for node in nodes if node.name not in wishes.remove]
    if wishes.keep:
        even = dict.fromkeys(parallelism, 1.0)
        return _keep(before, parallelism, open_nodes, wishes, hidden, weights or even)
    return _even(parallelism, open_nodes)


def _even(parallelism: Mapping[str, int], nodes: list[Node]) -> Hosts:
    """Deal instances in turn, a node of more slots more often: Storm's even scheduler, Spark's spreading."""
    hosts: Hosts = {node.name: {} for node in nodes}
    turns = [node.name for node in nodes]
    most = max(node.kind.slots for node in nodes)
    if any(node.kind.slots != most for node in nodes):
        turns = [node.name for turn in range(most) for node in nodes if node.kind.slots > turn]
    dealt = 0
    for operator, count in parallelism.items():
        for _ in range(count):
            here = hosts[turns[dealt % len(turns)]]
            here[operator] = here.get(operator, 0) + 1
            dealt += 1
    return hosts


def _keep(
    before: Mapping[str, Mapping[str, int]],
    parallelism: Mapping[str, int],
    nodes: list[Node],
    wishes: Placement,
    hidden: frozenset[str],
    weights: Mapping[str, float],  # CPU of one instance
) -> Hosts:
    """Scale-out moves nothing; scale-in ends the wished instances, else those that came last (LIFO).

    A new instance goes to the node with the least CPU in use, one with a free slot if there is any.
    """
    hosts: Hosts = {node.name: dict(before.get(node.name, {})) for node in nodes}
    for operator, node_name in wishes.take:
        if hosts.get(node_name, {}).get(operator, 0) > 0:
            _change(hosts[node_name], operator, -1)
    for operator, node_name in wishes.put:
        if node_name in hosts:
            _change(hosts[node_name], operator, +1)
    cores = {node.name: node.kind.cores for node in nodes}
    free = {node.name: node.kind.slots - sum(hosts[node.name].values()) for node in nodes}
    used = {name: sum(weights[o] * count for o, count in here.items()) for name, here in hosts.items()}
    counts = {operator: sum(here.get(operator, 0) for here in hosts.values()) for operator in parallelism}
    for operator, wanted in parallelism.items():
        for name in reversed(hosts):
            while counts[operator] > wanted and hosts[name].get(operator, 0) > 0:
                _change(hosts[name], operator, -1)
                counts[operator] -= 1
                used[name] -= weights[operator]
                free[name] += 1
        while counts[operator] < wanted:
            visible = [name for name in hosts if name not in hidden] or list(hosts)
            least = min(visible, key=lambda name: (free[name] <= 0, used[name] / cores[name]))
            _change(hosts[least], operator, +1)
            counts[operator] += 1
            used[least] += weights[operator]
            free[least] -= 1
    return hosts


def _change(here: dict[str, int], operator: str, by: int) -> None:
    here[operator] = here.get(operator, 0) + by
    if here[operator] == 0:
        del here[operator]
