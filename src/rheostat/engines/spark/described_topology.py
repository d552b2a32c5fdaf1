"""Builds the topology of an application from what its driver process describes."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from rheostat.engines.spark.protocol import Description, QueryStage, QueryStatus, Step
from rheostat.model.topology import Operator, Stream, Topology


def as_changeable(declared: Topology) -> Topology:
    """The topology as a plan can change it: where all operators are pinned, the tasks that run at once.

    >>> fixed = Topology("totals", (Operator("scan", 0.0, 8, 8),))
    >>> as_changeable(fixed).operator("scan").min_parallelism
    1
    """
    if len(declared.pinned) < len(declared.operators):
        return declared
    operators = tuple(replace(pinned, min_parallelism=1, stateful=False) for pinned in declared.operators)
    return Topology(declared.name, operators, declared.streams)


def topology(name: str, described: Description, realtime: bool) -> Topology:
    """The topology that a driver describes: its declared steps, or the stages of a plain script's queries."""
    if described.steps is not None:
        return _of_steps(name, described.steps)
    operators: list[Operator] = []
    streams: list[Stream] = []
    for stages in map(_stages, described.queries):
        operators += [_of_stage(stage, realtime) for stage in stages]
        streams += [
            Stream(stages[parent].operator, stage.operator) for stage in stages for parent in stage.parents
        ]
    return Topology(name, tuple(operators), tuple(streams))


def queries(described: Description) -> dict[str, list[str]]:
    """The operators of each query, from the source up."""
    if described.steps is None:
        return {query.name: [stage.operator for stage in _stages(query)] for query in described.queries}
    operators: dict[str, list[str]] = {}
    for step in described.steps:
        operators.setdefault(step.query, []).append(step.name)
    return operators


def first_parallelism(described: Description, declared: Topology) -> dict[str, int]:
    """As it runs: what was set last, else as planned; stateful operators have what their checkpoint has."""
    planned = {stage.operator: stage.tasks for query in described.queries for stage in query.stages}
    counts = {**planned, **described.parallelism, **described.state}
    return {o.name: int(counts.get(o.name) or o.min_parallelism) for o in declared.operators}


def _stages(query: QueryStatus) -> tuple[QueryStage, ...]:
    """The stages of a script's query; one stands for all until its first batch is planned."""
    return query.stages or (QueryStage(f"{query.name} (starting)"),)


def _of_steps(name: str, steps: Sequence[Step]) -> Topology:
    """Every reader of an operator gets all its rows: two readers double them."""
    readers = Counter(upstream for step in steps for upstream in step.inputs)
    operators = tuple(
        Operator(step.name, 0.0, step.min_parallelism, step.max_parallelism, step.stateful) for step in steps
    )
    streams = tuple(
        Stream(upstream, step.name, float(readers[upstream]), 1 / readers[upstream])
        for step in steps
        for upstream in step.inputs
    )
    return Topology(name, operators, streams)


def _of_stage(stage: QueryStage, realtime: bool) -> Operator:
    """A stage that begins with the script's own repartition can change its parallelism.

    A source of unknown parallelism takes the slots that there are, unless each task holds one for good.
    """
    adjustable = stage.shuffle is not None and not stage.stateful
    if adjustable or (not stage.tasks and not realtime):
        return Operator(stage.operator)
    tasks = stage.tasks or 1
    return Operator(stage.operator, min_parallelism=tasks, max_parallelism=tasks, stateful=stage.stateful)
