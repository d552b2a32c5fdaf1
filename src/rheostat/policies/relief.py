"""Relief of overloaded nodes: what the base adds where a policy cannot be asked, or asks for too little."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rheostat.analyze.execution import ceil
from rheostat.analyze.overload import OVERLOADED
from rheostat.model.configuration import Configuration
from rheostat.model.decision import Proposal

if TYPE_CHECKING:  # the base of all policies uses this module
    from rheostat.analyze.overload import Overload
    from rheostat.policies.base import Situation

NO_ROOM = (
    "as many nodes as the limit allows ({}) are in use: allow more with --nodes, or larger ones with --node"
)
NO_TASKS = (
    "another node would stay empty, because all tasks already run at once: "
    "give the source or the shuffles of the script more partitions"
)
NO_SPREAD = (
    "another node would free no memory: give each node more (--node memory_mb=...), read fewer rows per "
    "trigger (such as Kafka's maxOffsetsPerTrigger), or bound RocksDB's share "
    "(spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage)"
)
STATE_SHARE = 0.2  # chosen: of the nodes' memory; where state holds less, other things fill the nodes
Limits = dict[str, int]


def relieve(situation: Situation, wished: Proposal, overloaded: Overload) -> Proposal:
    """A policy's wish without what shrinks; where it brings no node, with nodes for the overload."""
    if situation.configuration.nodes > situation.bounds.max_nodes:
        return wished  # the bounds come first
    target = no_smaller(situation.configuration, wished.target)
    if target.nodes > situation.configuration.nodes:
        return _without_shrinking(wished, target, overloaded)
    limits = _limits(situation)
    spreads = not overloaded.memory or _spreads(situation)
    if obstacle := _obstacle(situation, overloaded, limits, spreads):
        return _held(situation, wished, target, overloaded, obstacle)
    nodes = _nodes(situation, overloaded, limits)
    more = nodes - situation.configuration.nodes
    return Proposal(
        Configuration(_filled(situation, target, nodes, limits), situation.executors_on(nodes), nodes),
        f"{overloaded.words}: {'one more node' if more == 1 else f'{more} more nodes'}",
        overloaded.causes,
        _instead_of(wished),
        alert=wished.alert if spreads else NO_SPREAD,
    )


def no_smaller(had: Configuration, target: Configuration) -> Configuration:
    """The target, but for what would shrink."""
    return Configuration(
        {name: max(count, had.parallelism.get(name, 1)) for name, count in target.parallelism.items()},
        max(target.executors, had.executors),
        max(target.nodes, had.nodes),
    )


def _without_shrinking(wished: Proposal, target: Configuration, overloaded: Overload) -> Proposal:
    """The policy's own growth; its placement would take away what must stay."""
    if target == wished.target and not (wished.placement.remove or wished.placement.take):
        return wished
    reason = f"{wished.reason}; nothing shrinks, because {overloaded.words}"
    return Proposal(target, reason, (*wished.causes, *overloaded.causes), wished.rejected, alert=wished.alert)


def _held(
    situation: Situation, wished: Proposal, target: Configuration, overloaded: Overload, obstacle: str
) -> Proposal:
    """No more nodes, and why; but instances that the policy adds on those that there are."""
    reason = f"{overloaded.words}; {obstacle}"
    if target == situation.configuration:
        return Proposal(target, f"hold: {reason}", overloaded.causes, _instead_of(wished), alert=obstacle)
    causes = (*wished.causes, *overloaded.causes)
    return Proposal(target, f"{wished.reason}; {reason}", causes, wished.rejected, alert=obstacle)


def _instead_of(wished: Proposal) -> tuple[str, ...]:
    return (f"the policy alone: {wished.reason}", *wished.rejected)


def _obstacle(situation: Situation, overloaded: Overload, limits: Limits, spreads: bool) -> str:
    """Why no node can help, and what the user can change; empty if one can."""
    had, most = situation.configuration.nodes, situation.bounds.max_nodes
    if not spreads and not overloaded.cpu:
        return NO_SPREAD
    if _useful_nodes(situation, limits) <= had:
        return NO_TASKS
    return NO_ROOM.format(most) if had >= most else ""


def _nodes(situation: Situation, overloaded: Overload, limits: Limits) -> int:
    """One more node, or as many as the running batch shows, but at most twice as many as there are."""
    had = situation.configuration.nodes
    wanted = max(had + 1, min(2 * had, ceil(had * overloaded.growth)))
    return situation.bounds.nodes(min(wanted, _useful_nodes(situation, limits)))


def _limits(situation: Situation) -> Limits:
    """How far each operator can grow; state stays as it is, unless nothing else can use another node.

    A rewrite of state pauses the stream, and without measures nobody knows what it would bring.
    """
    had, operators = situation.configuration, situation.topology.operators
    every = {operator.name: operator.max_parallelism for operator in operators}
    kept = {operator.name: had.parallelism[operator.name] for operator in operators if operator.stateful}
    live = every | kept
    return live if _useful_nodes(situation, live) > had.nodes else every


def _useful_nodes(situation: Situation, limits: Limits) -> int:
    return situation.nodes_with(situation.model.most_slots(limits))


def _spreads(situation: Situation) -> bool:
    """Whether another node would take over state, and enough of it to relieve the nodes that there are.

    Each node that is added lowers the share that state has, so growth ends where it does not relieve. A node
    with room shows that state does not move there: then the next one would stay as empty.
    """
    fullest = [max(node.memory or 0.0, node.heap or 0.0) for node in situation.observation.nodes]
    if not fullest or sum(fullest) / len(fullest) <= OVERLOADED or _state_share(situation) < STATE_SHARE:
        return False
    model, slots = situation.model, situation.slots_on(situation.configuration.nodes)
    if not model.scales_nodes_only and set(situation.topology.names) - set(situation.topology.pinned):
        return True
    return any(
        operator.max_parallelism > slots and (operator.stateful or model.scales_nodes_only)
        for operator in situation.topology.operators
    )


def _state_share(situation: Situation) -> float:
    """What state holds of the memory of all nodes; 0 if nobody knows."""
    kinds = {kind.name: kind for kind in situation.kinds}
    application, nodes = situation.observation.application, situation.observation.nodes
    megabytes = sum(kinds.get(node.kind, situation.kind).memory_mb for node in nodes)
    held = application.state_memory_bytes or application.state_bytes or 0.0
    return held / (megabytes * 2**20) if megabytes else 0.0


def _filled(situation: Situation, target: Configuration, nodes: int, limits: Limits) -> dict[str, int]:
    """The parallelism that uses these nodes."""
    model, slots = situation.model, situation.slots_on(nodes)
    if model.takes_turns:
        wanted = model.filling(target.parallelism, slots)
    else:
        if model.cores_apart:  # an instance can use a core, but no more
            slots = min(slots, model.slots_for({}) + ceil(situation.cores_on(nodes)))
        wanted = _shared_out(situation, target, slots, limits)
    within = {name: max(target.parallelism[name], min(wanted[name], limits[name])) for name in wanted}
    return situation.bounds.parallelism(situation.topology, within)


def _shared_out(situation: Situation, target: Configuration, slots: int, limits: Limits) -> dict[str, int]:
    """Where each instance has its own slot: one more of the busiest, else of the smallest, and so on."""
    wanted, busy = dict(target.parallelism), situation.evaluation.busy
    free = slots - situation.model.slots_for(wanted)
    for _ in range(free):
        growing = [name for name in wanted if wanted[name] < limits[name]]
        if not growing:
            break
        wanted[min(growing, key=lambda name: (-busy.get(name, 0.0) / wanted[name], wanted[name]))] += 1
    return wanted
