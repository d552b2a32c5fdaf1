"""From an observation to an evaluation: demand, capacity, utilisation and health of every operator."""

from collections.abc import Mapping
from dataclasses import dataclass

from rheostat.analyze.execution import ExecutionModel
from rheostat.analyze.rates import demand, stated_selectivity
from rheostat.model.configuration import NodeKind
from rheostat.model.observation import Observation, OperatorMeasures
from rheostat.model.topology import Topology


@dataclass(frozen=True, slots=True)
class OperatorEvaluation:
    """The evaluation of one operator."""

    demand: float  # rows/s that the load requires of it
    cost_seconds: float  # CPU seconds per row
    busy: float  # slots that the demand keeps busy
    capacity: float | None  # rows/s; None: unknown, because it was idle
    utilisation: float
    health: float


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The evaluation of the application. `missing` lists the measures that were needed but are absent."""

    operators: Mapping[str, OperatorEvaluation]
    missing: tuple[str, ...] = ()
    load: float = 0.0  # rows/s at all sources at which the costs were measured

    @property
    def busy(self) -> dict[str, float]:
        """Slots kept busy, per operator: the input of the execution models."""
        return {name: operator.busy for name, operator in self.operators.items()}


def evaluate(
    topology: Topology, observation: Observation, model: ExecutionModel, kind: NodeKind
) -> Evaluation:
    """Evaluate every operator; health is processed / received if operators have queues."""
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
    per_slot = slot_cores(observation, kind)
    busy = {
        name: rates[name] * model.slot_seconds(observation.operators[name], costs[name] / per_slot)
        for name in topology.names
    }
    slots = sum(node.slots for node in observation.nodes)
    utilisation = model.utilisation(busy, parallelism, slots)
    judged = {}
    for name in topology.names:
        used = utilisation[name]
        capacity = rates[name] / used if used > 0 else None
        measures = observation.operators[name]
        health = min(1.0, 1 / used) if used > 0 else 1.0
        if model.has_queues and measures.received and measures.processed is not None:
            health = min(1.0, measures.processed / measures.received)
        judged[name] = OperatorEvaluation(rates[name], costs[name], busy[name], capacity, used, health)
    return Evaluation(judged, load=model.measured_load(observation, topology.sources))


def slot_cores(observation: Observation, kind: NodeKind) -> float:
    """CPU that a slot offers, on average over all nodes; that of this kind, if no node was measured."""
    offers = {node.cores / node.slots for node in observation.nodes}
    if len(offers) > 1:
        return sum(node.cores for node in observation.nodes) / sum(node.slots for node in observation.nodes)
    return offers.pop() if offers else kind.slot_cores


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
