"""Situations with something changed, and observations laid out by hand."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rheostat.analyze.evaluation import evaluate
from rheostat.analyze.execution import ExecutionModel, Pipelined
from rheostat.model.configuration import Bounds, Configuration, NodeKind
from rheostat.model.observation import ApplicationMeasures, NodeMeasures, Observation, OperatorMeasures
from rheostat.model.topology import Operator, Stream, Topology
from rheostat.policies.base import Situation


def observed(seen: Situation, observation: Observation) -> Situation:
    """The same situation with another observation, judged anew."""
    judged = evaluate(seen.topology, observation, seen.model, seen.kind)
    return replace(seen, observation=observation, evaluation=judged)


def with_operator(seen: Situation, name: str, **changes: Any) -> Situation:
    """One operator measured differently."""
    operators = dict(seen.observation.operators)
    operators[name] = replace(operators[name], **changes)
    return observed(seen, replace(seen.observation, operators=operators))


def with_nodes(seen: Situation, **changes: Any) -> Situation:
    """All nodes measured differently."""
    nodes = tuple(replace(node, **changes) for node in seen.observation.nodes)
    return observed(seen, replace(seen.observation, nodes=nodes))


def with_application(seen: Situation, **changes: Any) -> Situation:
    """The application as a whole measured differently."""
    application = replace(seen.observation.application, **changes)
    return observed(seen, replace(seen.observation, application=application))


def with_limits(seen: Situation, name: str, least: int, most: int) -> Situation:
    """One operator's own bounds changed."""
    operators = tuple(
        replace(one, min_parallelism=least, max_parallelism=most) if one.name == name else one
        for one in seen.topology.operators
    )
    return replace(seen, topology=Topology(seen.topology.name, operators, seen.topology.streams))


def of_arrivals(
    arrivals: Mapping[str, tuple[float, ...]],
    streams: tuple[Stream, ...] = (),
    *,
    count: int = 4,
    waiting: Mapping[str, float] | None = None,
    model: ExecutionModel | None = None,
) -> Situation:
    """Operators of 1 ms per row with queues, `count` instances each on slots of one core, in a minute.

    So one operator's capacity is count * 60,000 rows per window.
    """
    topology = Topology("by hand", tuple(Operator(name, 0.001) for name in arrivals), streams)
    kind, nodes = NodeKind(cores=4, slots=4), len(arrivals) * count // 4 + 1
    operators = {
        name: OperatorMeasures(
            parallelism=count,
            received=sum(rows),
            processed=sum(rows),
            cpu_seconds=0.001 * sum(rows),
            waiting=(waiting or {}).get(name, 0.0),
            arrivals=rows,
        )
        for name, rows in arrivals.items()
    }
    machines = tuple(NodeMeasures(f"n{number + 1}", 4, 4.0, cpu=0.5) for number in range(nodes))
    load = {name: sum(arrivals[name]) / 60 for name in topology.sources}
    observation = Observation(0.0, 60.0, operators, machines, ApplicationMeasures(load, backlog=0.0))
    model = model or Pipelined()
    return Situation(
        now=60.0,
        topology=topology,
        configuration=Configuration(dict.fromkeys(arrivals, count), nodes, nodes),
        observation=observation,
        evaluation=evaluate(topology, observation, model, kind),
        model=model,
        kinds=(kind,),
        bounds=Bounds(1, 50),
    )
