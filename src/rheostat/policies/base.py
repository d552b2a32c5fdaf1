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

from rheostat.analyze.backlog import PATIENCE_SECONDS, drain_rate, waits_too_long
from rheostat.analyze.evaluation import Evaluation, instance_cores
from rheostat.analyze.execution import ExecutionModel, ceil
from rheostat.analyze.overload import OVERLOADED, overload
from rheostat.analyze.rates import visits
from rheostat.model.configuration import Bounds, Configuration, NodeKind
from rheostat.model.decision import Cause, Placement, Proposal
from rheostat.model.observation import InstanceMeasures, Observation
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
    def instance_cores(self) -> float:
        """The most CPU that an instance can count on, on average over the nodes that there are."""
        return instance_cores(self.model, self.observation, self.kind)

    def replicas(self, name: str) -> tuple[InstanceMeasures, ...]:
        """An operator's instances, each as busy as measured; one that waits for others than its rows is busy.

        Where stages take turns, or nobody can tell the instances apart, each is as busy as the operator.
        """
        measures, judged = self.observation.operators[name], self.evaluation.operators[name]
        known = [(each, each.utilisation) for each in measures.instances if each.utilisation is not None]
        if self.model.takes_turns or not known or len(known) < len(measures.instances):
            return (InstanceMeasures("", utilisation=judged.utilisation),) * max(1, measures.parallelism)
        waits = self.evaluation.waits(name) / len(known)
        return tuple(replace(each, utilisation=used + waits) for each, used in known)

    @property
    def load_to_serve(self) -> float:
        """The load, and beside it what waits too long: that should be gone in DRAIN_SECONDS."""
        return self.load + drain_rate(self.observation, self.model)

    @property
    def catch_up(self) -> float:
        """How many times its demand an operator must serve, so that what waits too long is gone in time."""
        return self.load_to_serve / self.load if self.load > 0 else 1.0

    def source_loads(self, load: float) -> dict[str, float]:
        """A load of all sources together, divided among them as in this window."""
        offered = {name: self.observation.application.load[name] or 0.0 for name in self.topology.sources}
        return {name: part * load / self.load for name, part in offered.items()} if self.load else offered

    def slots_on(self, nodes: int) -> int:
        """The slots of so many nodes: the oldest of those that there are, and more of the default kind."""
        return sum(self._on(nodes, [node.slots for node in self.observation.nodes], self.kind.slots))

    def cores_on(self, nodes: int) -> float:
        """The cores of so many nodes, as `slots_on` counts them."""
        there = [node.cores for node in self.observation.nodes][:nodes]
        return sum(there) + self.kind.cores * (nodes - len(there))

    def executors_on(self, nodes: int) -> int:
        """The executors of so many nodes, as `slots_on` counts them."""
        kinds = {kind.name: kind.executors for kind in self.kinds}
        there = [kinds.get(node.kind, self.kind.executors) for node in self.observation.nodes]
        return sum(self._on(nodes, there, self.kind.executors))

    def _on(self, nodes: int, there: list[int], more: int) -> list[int]:
        return [*there[:nodes], *[more] * (nodes - len(there))]

    def nodes_for(self, parallelism: Mapping[str, int], cores: float | None = None) -> int:
        """The fewest nodes whose slots run this parallelism, and which have the cores for it.

        They are the oldest, then more of the default kind. Unless cores are given, they are as many as keep
        the nodes from being overloaded by the present load.
        """
        needed = self.nodes_with(self.model.slots_for(parallelism))
        if self.model.cores_apart:
            wanted = self.evaluation.cores / OVERLOADED if cores is None else cores
            needed = max(needed, self.nodes_with_cores(wanted))
        return self.bounds.nodes(needed)

    def nodes_with_cores(self, cores: float) -> int:
        """The fewest nodes that have so many cores, whatever the bounds."""
        there = list(accumulate(node.cores for node in self.observation.nodes))
        if not there or there[-1] < cores - 1e-9:
            return len(there) + ceil((cores - (there[-1] if there else 0.0)) / self.kind.cores)
        return next(count for count, together in enumerate(there, 1) if together >= cores - 1e-9)

    @property
    def short_of_cpu(self) -> Cause | None:
        """The CPU that the load needs beyond what nodes can give; None: it fits."""
        needed, room = self.evaluation.cores, OVERLOADED * sum(node.cores for node in self.observation.nodes)
        if not self.model.cores_apart or needed <= room:
            return None
        return Cause("cores needed", "the load", needed, ">", room)

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
        cores = {o.name: load * per_row[o.name] * o.cost_seconds for o in self.topology.operators}
        per_instance = self.model.instance_cores(kind.cores, kind.slots)
        busy = {name: work / per_instance for name, work in cores.items()}
        parallelism = self.bounds.parallelism(self.topology, self.model.parallelism_for(busy, target))
        needed = ceil(self.model.slots_for(parallelism) / kind.slots)
        if self.model.cores_apart:
            needed = max(needed, ceil(sum(cores.values()) / (OVERLOADED * kind.cores)))
        nodes = self.bounds.nodes(needed)
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


STALE = "no batch ended in this window, so nothing shrinks"
WAITS = f"rows wait for more than {PATIENCE_SECONDS:g} s, so nothing shrinks"


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
        return _not_too_soon(situation, replace(proposal, target=target, reason=reason)), memory

    def initial(self, start: Start) -> Configuration:
        """The configuration to start with: just enough for the first load, unless a policy says otherwise."""
        return start.sized_for(start.first_load)

    @abstractmethod
    def propose(self, situation: Situation, memory: Memory) -> tuple[Proposal, Memory]:
        """Wish for a configuration; every measure in `situation.evaluation` is known here."""


def _not_too_soon(situation: Situation, wished: Proposal) -> Proposal:
    """The wish without what shrinks, where nobody can know yet that less would do."""
    stale = situation.observation.application.stale
    if not stale and not waits_too_long(situation.observation, situation.model):
        return wished
    grown, why = no_smaller(situation.configuration, wished.target), STALE if stale else WAITS
    if grown == wished.target and not (wished.placement.remove or wished.placement.take):
        return wished
    if grown == situation.configuration:
        return replace(hold(situation, f"hold: {why}"), rejected=wished.rejected, alert=wished.alert)
    return Proposal(grown, f"{wished.reason}; {why}", wished.causes, wished.rejected, alert=wished.alert)


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
