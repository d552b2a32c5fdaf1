"""A small world to try a policy in, minute by minute: `words` of the example on nodes of two slots."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from rheostat.analyze.evaluation import evaluate
from rheostat.analyze.execution import ExecutionModel
from rheostat.model.observation import ApplicationMeasures, Observation, OperatorMeasures
from rheostat.policies.base import Policy, Situation
from rheostat.policies.example import WORDS, situation

TURNS = 150  # of a minute; enough for one step at a time
QUIET_TURNS = 20  # a policy that wished for nothing else in so many has settled

Size = tuple[tuple[int, int, int], int]


def sized(size: Size, model: ExecutionModel) -> Size:
    """Where stages take turns, all of them have as many tasks as there are slots."""
    instances, nodes = size
    lines, split, count = model.filling(dict(zip(WORDS.names, instances, strict=True)), 2 * nodes).values()
    return (lines, split, count), nodes


def settled(
    policy: Policy,
    model: ExecutionModel,
    load: float,
    parallelism: tuple[int, int, int],
    nodes: int,
    asking_seconds: float = 0.0,
) -> tuple[Situation, Situation]:
    """The first and the last situation of some turns at one load, in which each wish is granted at once."""
    memory: Mapping[str, Any] = {}
    current, backlog = working(load, parallelism, nodes, 60.0, 0.0, model, asking_seconds)
    first, quiet = current, 0
    for turn in range(TURNS):
        proposal, memory = policy.decide(current, memory)
        quiet = 0 if proposal.target != current.configuration else quiet + 1
        if quiet == QUIET_TURNS:
            break
        lines, split, count = (proposal.target.parallelism[name] for name in current.topology.names)
        size, now = ((lines, split, count), proposal.target.nodes), 60.0 * (turn + 2)
        current, backlog = working(load, *size, now, backlog, model, asking_seconds)
    return first, current


def working(
    load: float,
    parallelism: tuple[int, int, int],
    nodes: int,
    now: float,
    backlog: float,
    model: ExecutionModel,
    asking_seconds: float = 0.0,
) -> tuple[Situation, float]:
    """A minute in which as much is processed as the slots allow, and the rest waits at the source."""
    whole = situation(load, parallelism, nodes, now=now, asking_seconds=asking_seconds, model=model)
    offered, most = 60 * load, highest(whole)
    part = min(1 + backlog / offered, 1 / most)
    backlog += offered * (1 - part)
    window = whole.observation
    operators = {
        name: _part_of(measures, part, model.takes_turns) for name, measures in window.operators.items()
    }
    machines = tuple(replace(node, cpu=min(1.0, part * (node.cpu or 0.0))) for node in window.nodes)
    application = replace(
        window.application, throughput=part * load, backlog=backlog, lag_seconds=backlog / load
    )
    if model.trigger_seconds is not None:
        batch = max(1.0, part) * most * model.trigger_seconds  # a batch takes all rows, however long
        application = replace(application, batch_seconds=batch, trigger_seconds=model.trigger_seconds)
    observation = replace(window, operators=operators, nodes=machines, application=application)
    return _observed(whole, observation), backlog


def _part_of(measures: OperatorMeasures, part: float, staged: bool) -> OperatorMeasures:
    """The operator with that part of its rows processed; only the application as a whole shows what waits."""
    return replace(
        measures,
        processed=part * (measures.processed or 0.0),
        emitted={name: part * rows for name, rows in measures.emitted.items()},
        cpu_seconds=part * (measures.cpu_seconds or 0.0),
        busy_seconds=part * (measures.busy_seconds or 0.0),
        waiting=None,
        instances=()
        if staged
        else tuple(
            replace(instance, processed=None, utilisation=part * (instance.utilisation or 0.0))
            for instance in measures.instances
        ),
    )


def half_measured(whole: Situation) -> Situation:
    """The same situation with nothing but the load, and the operators' rows and CPU."""
    window = whole.observation
    operators = {
        name: replace(measures, waiting=None, arrivals=(), instances=(), busy_seconds=None)
        for name, measures in window.operators.items()
    }
    machines = tuple(replace(node, cpu=None, memory=None, instances={}) for node in window.nodes)
    application = ApplicationMeasures(load=window.application.load)
    return _observed(whole, replace(window, operators=operators, nodes=machines, application=application))


def highest(current: Situation) -> float:
    """The highest utilisation that the load causes, whatever part of it was processed."""
    return max(operator.utilisation for operator in current.evaluation.operators.values())


def with_something_missing(whole: Situation) -> Iterator[Situation]:
    """The same situation without the load, an operator's CPU or rows, an operator, or all nodes."""
    window = whole.observation
    split = window.operators["split"]
    yield _observed(whole, replace(window, application=replace(window.application, load={"lines": None})))
    yield _observed(
        whole, replace(window, operators={**window.operators, "split": replace(split, cpu_seconds=None)})
    )
    yield _observed(
        whole, replace(window, operators={**window.operators, "split": replace(split, processed=None)})
    )
    without = {name: measures for name, measures in window.operators.items() if name != "split"}
    yield _observed(whole, replace(window, operators=without))
    yield _observed(whole, replace(window, nodes=()))


def _observed(whole: Situation, observation: Observation) -> Situation:
    judged = evaluate(whole.topology, observation, whole.model, whole.kind)
    return replace(whole, observation=observation, evaluation=judged)
