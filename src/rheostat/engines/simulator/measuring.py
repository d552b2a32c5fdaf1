"""Turns the accounts of a window into the measures of an observation."""

from collections.abc import Mapping, Sequence

import numpy as np

from rheostat.analyze.rates import stated_selectivity
from rheostat.engines.simulator.deployment import totals
from rheostat.engines.simulator.flow import Flow
from rheostat.model.node import Node
from rheostat.model.observation import ARRIVAL_PARTS, InstanceMeasures, NodeMeasures, OperatorMeasures
from rheostat.model.topology import Topology


def operators(
    topology: Topology, flow: Flow, simulated: Sequence[Node], seconds: float
) -> dict[str, OperatorMeasures]:
    """Return rows, CPU and queues of every operator."""
    deployment, sigma = flow.deployment, stated_selectivity(topology)
    cpu = totals(deployment.operator, flow.cpu, flow.size)
    waiting, arrivals, instances = flow.waiting(), _arrivals(flow), _instances(flow, simulated, seconds)
    measured = {}
    for index, name in enumerate(topology.names):
        processed = float(flow.processed[index])
        measured[name] = OperatorMeasures(
            parallelism=int(deployment.parallelism[index]),
            received=float(flow.received[index]),
            processed=processed,
            emitted={s.downstream: processed * sigma[(name, s.downstream)] for s in topology.outputs[name]},
            cpu_seconds=float(cpu[index]),
            busy_seconds=float(flow.busy[index]),
            waiting=waiting[index],
            arrivals=arrivals.get(index, ()),
            instances=tuple(instances[index]),
        )
    return measured


def nodes(
    flow: Flow,
    simulated: Sequence[Node],
    placed: Mapping[str, Mapping[str, int]],
    hidden: frozenset[str],
    seconds: float,
) -> tuple[NodeMeasures, ...]:
    """Return CPU and memory of every node, overheads included."""
    settings = flow.settings
    used = totals(flow.deployment.node, flow.cpu, len(simulated)) / max(seconds, 1e-9)
    queued = sum(rows or 0.0 for rows in flow.waiting()) if settings.mode == "storm" else 0.0
    queued_mb = queued * settings.row_bytes / 1e6 / len(simulated)
    measured = []
    for index, node in enumerate(simulated):
        kind = node.kind
        cpu = settings.overhead.node_cpu(float(used[index]))
        memory = kind.executors * settings.executor_memory_mb + queued_mb
        measured.append(
            NodeMeasures(
                name=node.name,
                slots=kind.slots,
                cores=kind.cores,
                kind=kind.name,
                region=node.region,
                price_per_hour=kind.price_per_hour,
                executors=kind.executors,
                cpu=min(1.0, cpu / kind.cores),
                memory=min(1.0, memory / kind.memory_mb),
                instances=None if settings.mode == "staged" else dict(placed[node.name]),
                hidden=node.name in hidden,
            )
        )
    return tuple(measured)


def _instances(flow: Flow, simulated: Sequence[Node], seconds: float) -> list[list[InstanceMeasures]]:
    """Return each operator's instances; none in micro-batch, where tasks have no fixed node."""
    measures: list[list[InstanceMeasures]] = [[] for _ in range(flow.size)]
    if flow.settings.mode == "staged":
        return measures
    d = flow.deployment
    offered = d.count * np.minimum(1.0, d.cores)[d.node] * max(seconds, 1e-9)
    utilisation = flow.cpu / np.maximum(offered, 1e-12)
    processed = flow.cpu / flow.cost[d.operator]
    for group, operator in enumerate(d.operator.tolist()):
        count = int(d.count[group])
        instance = InstanceMeasures(
            node=simulated[int(d.node[group])].name,
            received=float(flow.received[operator] / d.parallelism[operator]),
            processed=float(processed[group] / count),
            utilisation=float(utilisation[group]),
        )
        measures[operator] += [instance] * count
    return measures


def _arrivals(flow: Flow) -> dict[int, tuple[float, ...]]:
    """Return the rows offered in equal intervals of the window: at every queue, or at the sources only."""
    log = np.array(flow.arrivals)
    if not len(log):
        return {}
    columns = range(flow.size) if log.shape[1] == flow.size else flow.sources.tolist()
    sums = [interval.sum(axis=0) for interval in np.array_split(log, min(ARRIVAL_PARTS, len(log)))]
    return {c: tuple(float(interval[i]) for interval in sums) for i, c in enumerate(columns)}
