"""The congested operator nearest to the sources, and the cheapest container that heals it (P0, 3.1)."""

from rheostat.model.decision import Cause, Placement, Proposal
from rheostat.policies.base import Situation, wish


def congested(situation: Situation, least_health: float) -> str | None:
    """The congested operator nearest to the sources (Algorithm 1, line 8) that may still grow."""
    names = sorted(situation.topology.names, key=situation.topology.depth.__getitem__)
    evaluations, current = situation.evaluation.operators, situation.configuration.parallelism
    for name in names:
        may_grow = current[name] < situation.topology.operator(name).max_parallelism
        if may_grow and evaluations[name].health < least_health:
            return name
    return None


def scale_out(
    situation: Situation, name: str, least_health: float, overloaded: float, *, nodes_only: bool = False
) -> Proposal:
    """Algorithm 2 on a congested operator: a slot where a node has some left, else a node."""
    cause = Cause("health", name, situation.evaluation.operators[name].health, "<", least_health)
    if situation.model.takes_turns:
        wanted, nodes = _slots_for_all(situation, nodes_only)
    else:
        wanted, nodes = _slot_for(situation, name, overloaded, nodes_only)
    reason = f"heal {name}: {cause}"
    return wish(situation, wanted, reason, nodes=nodes, causes=(cause,), placement=Placement(keep=True))


def _slot_for(
    situation: Situation, name: str, overloaded: float, nodes_only: bool
) -> tuple[dict[str, int], int]:
    """One more instance, and a node for it where every node is full or overloaded."""
    current, measured = situation.configuration, situation.observation.nodes
    wanted = {**current.parallelism, name: current.parallelism[name] + 1}
    full = all((node.cpu or 0.0) > overloaded or (node.memory or 0.0) > overloaded for node in measured)
    slots = sum(node.slots for node in measured)
    lacking = not situation.model.oversubscribes and situation.model.slots_for(wanted) > slots
    return wanted, current.nodes + (1 if full or lacking or nodes_only else 0)


def _slots_for_all(situation: Situation, nodes_only: bool) -> tuple[dict[str, int], int]:
    """Where operators take turns, all of them use the slots there are, before a node is added."""
    current, topology, model = situation.configuration, situation.topology, situation.model
    slots = sum(node.slots for node in situation.observation.nodes)
    unused = any(
        current.parallelism[operator.name] < min(slots, operator.max_parallelism)
        for operator in topology.operators
        if topology.inputs[operator.name] and not operator.stateful
    )
    nodes = current.nodes + (0 if unused and not nodes_only else 1)
    wanted = model.filling(current.parallelism, situation.slots_on(nodes))
    # Where the operators' own limits cap them, more nodes would stay empty.
    most = model.slots_for(situation.bounds.parallelism(topology, wanted))
    return wanted, max(current.nodes, min(nodes, situation.nodes_with(most)))
