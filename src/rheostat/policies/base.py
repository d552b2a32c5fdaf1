"""What a policy is: a pure function from a situation and its memory to a proposal and its next memory.

To add one: subclass Policy in one file, name it in the entry point group `rheostat.policies`, run the
conformance suite (tests/contracts/test_policies.py). docs/writing-a-policy.md walks through it.
"""

import random
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, ClassVar

from rheostat.analyze.evaluation import Evaluation, slot_cores
from rheostat.analyze.execution import ExecutionModel, ceil
from rheostat.analyze.overload import overload
from rheostat.analyze.rates import visits
from rheostat.model.configuration import Bounds, Configuration, NodeKind
from rheostat.model.decision import Cause, Placement, Proposal
from rheostat.model.observation import Observation
from rheostat.model.topology import Topology
from rheostat.policies.relief import no_smaller, relieve

Memory = Mapping[str, Any]  # plain JSON data: it must survive a controller's restart


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything a policy may look at in one turn."""

    now: float
    topology: Topology
    configuration: Configuration
    observation: Observation
    evaluation: Evaluation
    model: ExecutionModel
    kinds: tuple[NodeKind, ...]
    bounds: Bounds = Bounds()
    seed: int = 0
    local_start: float = 0.0  # local time at which `now` was 0, in seconds since Monday's midnight

    @property
    def kind(self) -> NodeKind:
        """The kind of node that is added unless a policy asks for another."""
        return self.kinds[0]

    @property
    def load(self) -> float:
        """Rows/s offered at all sources together; a policy is only asked when it is known."""
        return self.observation.total_load or 0.0

    def rates_at(self, load: float) -> dict[str, float]:
        """Rows/s at every operator at another load, by the mix and the selectivity of this window."""
        if self.load <= 0:
            return {name: per_row * load for name, per_row in visits(self.topology).items()}
        return {name: judged.demand / self.load * load for name, judged in self.evaluation.operators.items()}

    def chance(self, turn: int) -> random.Random:
        """Randomness that depends on nothing but the seed and the turn."""
        return random.Random(f"{self.seed}:{turn}")

    @property
    def slot_cores(self) -> float:
        """CPU that a slot offers, on average over the nodes that there are."""
        return slot_cores(self.observation, self.kind)

    def slots_on(self, nodes: int) -> int:
        """The slots of so many nodes: the oldest of those that there are, and more of the default kind."""
        return sum(self._on(nodes, [node.slots for node in self.observation.nodes], self.kind.slots))

    def executors_on(self, nodes: int) -> int:
        """The executors of so many nodes, as `slots_on` counts them."""
        kinds = {kind.name: kind.executors for kind in self.kinds}
        there = [kinds.get(node.kind, self.kind.executors) for node in self.observation.nodes]
        return sum(self._on(nodes, there, self.kind.executors))

    def _on(self, nodes: int, there: list[int], more: int) -> list[int]:
        return [*there[:nodes], *[more] * (nodes - len(there))]

    def nodes_for(self, parallelism: Mapping[str, int]) -> int:
        """The fewest nodes whose slots run this parallelism: the oldest, then more of the default kind."""
        return self.bounds.nodes(self.nodes_with(self.model.slots_for(parallelism)))

    def nodes_with(self, slots: int) -> int:
        """The fewest nodes that have so many slots, whatever the bounds."""
        there = list(accumulate(node.slots for node in self.observation.nodes))
        if not there or there[-1] < slots:
            return len(there) + ceil((slots - (there[-1] if there else 0)) / self.kind.slots)
        return next(count for count, together in enumerate(there, 1) if together >= slots)


@dataclass(frozen=True, slots=True)
class Start:
    """What is known before an application starts, to choose its first configuration."""

    topology: Topology
    model: ExecutionModel
    kinds: tuple[NodeKind, ...]
    bounds: Bounds
    first_load: float  # rows/s at all sources
    peak_load: float

    @property
    def kind(self) -> NodeKind:
        """The kind of node that it starts on."""
        return self.kinds[0]

    def sized_for(self, load: float, target: float = 0.8) -> Configuration:
        """The smallest configuration that the stated costs allow for a load."""
        kind, per_row = self.kind, visits(self.topology)
        slots_per_core = load / kind.slot_cores
        busy = {o.name: slots_per_core * per_row[o.name] * o.cost_seconds for o in self.topology.operators}
        parallelism = self.bounds.parallelism(self.topology, self.model.parallelism_for(busy, target))
        nodes = self.bounds.nodes(ceil(self.model.slots_for(parallelism) / kind.slots))
        return Configuration(parallelism, nodes * kind.executors, nodes)


@dataclass(frozen=True)
class Info:
    """A policy's line in `rheostat policies`."""

    name: str
    level: str  # what it scales: operators, nodes, all
    kind: str  # static, reactive, proactive, preventive
    source: str

    @property
    def scales(self) -> bool:
        """Whether it changes the size at all; one that declares its kind as static never does."""
        return self.kind != "static"


WAITS = "no batch ended in this window, so nothing shrinks"


@dataclass(frozen=True)
class Policy(ABC):
    """Base of all policies. Parameters are the fields of the subclass, named as in its paper."""

    info: ClassVar[Info]
    period_seconds: float = 60.0  # how often it wants to be asked

    def decide(self, situation: Situation, memory: Memory) -> tuple[Proposal, Memory]:
        """Decide by the policy's wish; while the nodes are overloaded, what it lacks of growth is added."""
        wished, memory = self._ask(situation, memory)
        overloaded = overload(situation.observation) if self.info.scales else None
        return relieve(situation, wished, overloaded) if overloaded else wished, memory

    def _ask(self, situation: Situation, memory: Memory) -> tuple[Proposal, Memory]:
        """Hold when something was not measured; else ask the policy and keep its wish within the bounds."""
        if situation.evaluation.missing:
            what = ", ".join(situation.evaluation.missing[:3])
            return hold(situation, f"hold: not measured in this window: {what}"), memory
        view = _with_open_slots(situation) if situation.model.scales_nodes_only else situation
        proposal, memory = self.propose(view, memory)
        target = _bounded(view, proposal)
        reason = (
            proposal.reason if target == proposal.target else f"{proposal.reason}; brought within the bounds"
        )
        if situation.model.scales_nodes_only:
            target = _tasks_at_once(situation, target)
        if (
            situation.observation.application.stale
            and (grown := no_smaller(situation.configuration, target)) != target
        ):
            if grown == situation.configuration:
                return hold(situation, f"hold: {WAITS}"), memory
            return Proposal(grown, f"{reason}; {WAITS}", proposal.causes, alert=proposal.alert), memory
        return replace(proposal, target=target, reason=reason), memory

    def initial(self, start: Start) -> Configuration:
        """The configuration to start with: just enough for the first load, unless a policy says otherwise."""
        return start.sized_for(start.first_load)

    @abstractmethod
    def propose(self, situation: Situation, memory: Memory) -> tuple[Proposal, Memory]:
        """Wish for a configuration; every measure in `situation.evaluation` is known here."""


def hold(situation: Situation, reason: str, causes: tuple[Cause, ...] = ()) -> Proposal:
    """Wish for no change."""
    return Proposal(situation.configuration, reason, causes)


def wish(
    situation: Situation,
    parallelism: Mapping[str, int],
    reason: str,
    *,
    nodes: int | None = None,
    causes: tuple[Cause, ...] = (),
    rejected: tuple[str, ...] = (),
    placement: Placement = Placement(),
    alert: str | None = None,
) -> Proposal:
    """Wish for a parallelism, and for the nodes that it needs unless a number is given."""
    bounded = situation.bounds.parallelism(situation.topology, parallelism)
    count = situation.bounds.nodes(situation.nodes_for(bounded) if nodes is None else nodes)
    target = Configuration(bounded, situation.executors_on(count), count)
    expected = {}
    slots = situation.slots_on(count)
    if situation.evaluation.operators:
        used = situation.model.utilisation(situation.evaluation.busy, bounded, slots)
        expected = {"highest utilisation": max(used.values())}
    proposal = Proposal(target, reason, causes, rejected, expected, placement, alert)
    if proposal.changes(situation.configuration):
        return proposal
    return replace(proposal, reason=f"hold: nothing left to change: {reason}")


def _bounded(situation: Situation, proposal: Proposal) -> Configuration:
    """The target within the bounds; single nodes that are named lead where they lead, and the guards look."""
    target, places = proposal.target, proposal.placement
    nodes = target.nodes if places.add or places.remove else situation.bounds.nodes(target.nodes)
    executors = target.executors if nodes == target.nodes else situation.executors_on(nodes)
    slots, had = situation.slots_on(nodes), situation.configuration.parallelism
    wanted = {
        name: situation.model.useful(count, max(slots, had.get(name, 1)))
        for name, count in target.parallelism.items()
    }
    return Configuration(situation.bounds.parallelism(situation.topology, wanted), executors, nodes)


def _with_open_slots(situation: Situation) -> Situation:
    """Where only nodes can change, a policy raises and lowers the slots that are open to the tasks.

    There may be more of them than tasks: a task that has a node to itself runs faster.
    """
    had, topology, step = situation.configuration, situation.topology, situation.model.step
    open_slots = situation.slots_on(had.nodes)
    most = max(open_slots, step * max(operator.max_parallelism for operator in topology.operators))
    operators = tuple(
        replace(operator, min_parallelism=step, max_parallelism=most) for operator in topology.operators
    )
    return replace(
        situation,
        topology=Topology(topology.name, operators, topology.streams),
        configuration=replace(had, parallelism=dict.fromkeys(had.parallelism, open_slots)),
    )


def _tasks_at_once(situation: Situation, target: Configuration) -> Configuration:
    """The nodes for the open slots that a policy wishes for, and the tasks that run there at once."""
    had, nodes = situation.configuration, target.nodes
    # Otherwise it wishes for nodes, if for anything.
    if max(target.parallelism.values()) != situation.slots_on(had.nodes):
        nodes = situation.nodes_for(target.parallelism)
    nodes = situation.bounds.nodes(nodes)
    slots = dict.fromkeys(target.parallelism, situation.slots_on(nodes))
    parallelism = situation.bounds.parallelism(situation.topology, slots)
    return Configuration(parallelism, situation.executors_on(nodes), nodes)
