"""From an observation to an evaluation: demand, capacity, utilisation and health of every operator."""

from collections.abc import Mapping
from dataclasses import dataclass

from rheostat.analyze.execution import ExecutionModel
from rheostat.analyze.rates import demand, stated_selectivity
from rheostat.model.configuration import NodeKind
from rheostat.model.observation import Observation, OperatorMeasures
from rheostat.model.topology import Topology

ON_THEIR_WAY_SECONDS = 2.0  # rows that came this late are no queue yet


@dataclass(frozen=True, slots=True)
class OperatorEvaluation:
    """The evaluation of one operator."""

    demand: float  # rows/s that the load requires of it
    cost_seconds: float  # CPU seconds per row
    busy: float  # slots that the demand keeps busy
    capacity: float | None  # rows/s; None: unknown, because it was idle
    utilisation: float
    health: float  # processed / received where rows can queue up before it, else capacity / demand

    @property
    def cores(self) -> float:
        """CPU that the demand takes."""
        return self.demand * self.cost_seconds


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The evaluation of the application. `missing` lists the measures that were needed but are absent."""

    operators: Mapping[str, OperatorEvaluation]
    missing: tuple[str, ...] = ()
    load: float = 0.0  # rows/s at all sources at which the costs were measured
    cpu: float = 0.0  # CPU that the demand takes / all nodes' cores; 0 where slots stand for them
    instance_cores: float = 1.0  # the most CPU that an instance can count on

    @property
    def cores(self) -> float:
        """CPU that the demand takes, in cores."""
        return sum(operator.cores for operator in self.operators.values())

    def cores_of(self, busy: Mapping[str, float]) -> dict[str, float]:
        """The CPU of operators that keep so many slots busy: less than theirs, if they also wait."""
        return {name: slots * self._cores_per_slot(name) for name, slots in busy.items()}

    def _cores_per_slot(self, name: str) -> float:
        judged = self.operators[name]
        return judged.cores / judged.busy if judged.busy > 0 else self.instance_cores

    def waits(self, name: str) -> float:
        """The slots that an operator holds while it waits itself, as for a remote service, at this demand."""
        judged = self.operators[name]
        return max(0.0, judged.busy - judged.cores / self.instance_cores)

    @property
    def busy(self) -> dict[str, float]:
        """Slots kept busy, per operator: the input of the execution models."""
        return {name: operator.busy for name, operator in self.operators.items()}


def evaluate(
    topology: Topology, observation: Observation, model: ExecutionModel, kind: NodeKind
) -> Evaluation:
    """Evaluate every operator."""
    missing = [
        f"load of {name}" for name in topology.sources if observation.application.load.get(name) is None
    ]
    missing += [f"measures of {name}" for name in topology.names if name not in observation.operators]
    if not observation.nodes:
        missing.append("nodes")
    costs: dict[str, float] = {}
    for name in topology.names:
        cost = _cost(topology, name, observation.operators.get(name))
        if cost is None:
            missing.append(f"CPU of {name}")
        else:
            costs[name] = cost
    if missing:
        return Evaluation({}, tuple(missing))

    load = {name: observation.application.load[name] or 0.0 for name in topology.sources}
    rates = demand(topology, load, measured_selectivity(topology, observation))
    parallelism = {name: observation.operators[name].parallelism for name in topology.names}
    per_instance = instance_cores(model, observation, kind)
    busy = {
        name: rates[name] * model.slot_seconds(observation.operators[name], costs[name] / per_instance)
        for name in topology.names
    }
    slots = sum(node.slots for node in observation.nodes)
    utilisation = model.utilisation(busy, parallelism, slots)
    cores = sum(rates[name] * costs[name] for name in topology.names)
    cpu = cores / sum(node.cores for node in observation.nodes) if model.cores_apart else 0.0
    health = _health(topology, observation, model, utilisation, cpu)
    judged = {}
    for name in topology.names:
        used = max(utilisation[name], cpu)  # full nodes limit every instance on them
        capacity = rates[name] / used if used > 0 else None
        judged[name] = OperatorEvaluation(
            rates[name], costs[name], busy[name], capacity, utilisation[name], health[name]
        )
    return Evaluation(judged, (), model.measured_load(observation, topology.sources), cpu, per_instance)


def instance_cores(model: ExecutionModel, observation: Observation, kind: NodeKind) -> float:
    """The most CPU of an instance, on average over all nodes; that of this kind, if no node was measured."""
    offers = [(model.instance_cores(node.cores, node.slots), node.slots) for node in observation.nodes]
    if not offers:
        return model.instance_cores(kind.cores, kind.slots)
    if len({cores for cores, _ in offers}) == 1:
        return offers[0][0]
    return sum(cores * slots for cores, slots in offers) / sum(slots for _, slots in offers)


def _health(
    topology: Topology,
    observation: Observation,
    model: ExecutionModel,
    utilisation: Mapping[str, float],
    cpu: float,
) -> dict[str, float]:
    """P0's health: processed / received at a queue, which counts until it is gone, else capacity / demand.

    Inside a query rows are held back, so that the queue before it belongs to its busiest operator.
    """
    seconds = observation.seconds
    queued = {name: _queue_health(observation.operators[name], seconds) for name in topology.names}
    health = {name: _served(max(used, cpu)) for name, used in utilisation.items()}
    if model.has_queues:
        return {name: health[name] if share is None else share for name, share in queued.items()}
    for name, share in queued.items():
        if share is not None:
            busiest = max(_behind(topology, name, queued), key=lambda other: utilisation[other])
            health[busiest] = min(health[busiest], share)
    return health


def _served(utilisation: float) -> float:
    return min(1.0, 1 / utilisation) if utilisation > 0 else 1.0


def _queue_health(measures: OperatorMeasures, seconds: float) -> float | None:
    """What it processed of all that it was given, what waited before included; None: no queue, or unknown."""
    waiting, processed, received = measures.waiting, measures.processed, measures.received
    if waiting is None or processed is None or received is None:
        return None
    on_their_way = received * min(1.0, ON_THEIR_WAY_SECONDS / seconds)
    given = max(received, processed + max(0.0, waiting - on_their_way))  # what was dropped was received
    return min(1.0, processed / given) if given > 0 else 1.0


def _behind(topology: Topology, name: str, queued: Mapping[str, float | None]) -> list[str]:
    """The operators that a queue's rows reach before they come to the next queue."""
    found, todo = [name], [name]
    while todo:
        below = [stream.downstream for stream in topology.outputs[todo.pop()]]
        new = [other for other in below if queued[other] is None and other not in found]
        found += new
        todo += new
    return found


def measured_selectivity(topology: Topology, observation: Observation) -> dict[tuple[str, str], float]:
    """The σ of every stream as measured in this window; the stated σ if nothing flowed."""
    sigma = stated_selectivity(topology)
    for upstream, downstream in sigma:
        measures = observation.operators.get(upstream)
        if measures is not None and measures.processed and downstream in measures.emitted:
            sigma[(upstream, downstream)] = measures.emitted[downstream] / measures.processed
    return sigma


def _cost(topology: Topology, name: str, measures: OperatorMeasures | None) -> float | None:
    """CPU seconds per row; for an idle operator as the topology states; unknown for a stalled one."""
    if measures is None or measures.processed is None or measures.cpu_seconds is None:
        return None
    if measures.processed > 0:
        return (measures.row_cpu_seconds or 0.0) / measures.processed
    if measures.received == 0:
        return topology.operator(name).cost_seconds
    return None
