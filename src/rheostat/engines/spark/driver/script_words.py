"""Says in words what Rheostat can change of a script's query, and what the user could do about the rest."""

from rheostat.engines.spark.protocol import QueryStage, QueryStatus
from rheostat.engines.spark.spec import SHUFFLE_PARTITIONS, Spec


def explain_query(query: QueryStatus, spec: Spec) -> str:
    """One line on a query whose plan is known."""
    parts = [_stage(stage, spec) for stage in query.stages]
    if not any(_changeable(stage) for stage in query.stages):
        parts.append(
            "only nodes are scaled; with repartition(n) before costly columns their tasks would be, too"
        )
    every = "without a pause" if query.trigger_seconds is None else f"every {query.trigger_seconds:g} s"
    ends = every if query.sink is None else f"{every}, into {query.sink}"
    return f"{query.name} ({ends}): {'; '.join(parts)}"


def _stage(stage: QueryStage, spec: Spec) -> str:
    if stage.stateful:
        return f"{stage.operator} keeps state in {_count(stage.tasks, 'partition')}{_why(stage, spec)}"
    if _changeable(stage):
        return f"{stage.operator} follows the load, as it begins with a repartition()"
    if stage.parents:
        return f"{stage.operator} has {_count(stage.tasks, 'task')}, as Spark shuffles into so many"
    tasks = "as many tasks" if stage.tasks is None else f"{_count(stage.tasks, 'task')}, as many"
    return f"{stage.operator} has {tasks} as its source has partitions"


def _count(number: int | None, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _changeable(stage: QueryStage) -> bool:
    return stage.shuffle is not None and not stage.stateful


def _why(stage: QueryStage, spec: Spec) -> str:
    """Where the number of state partitions comes from, if it was chosen for the script."""
    chosen = spec.state_partitions is not None and SHUFFLE_PARTITIONS not in spec.settings
    if not chosen or stage.tasks != spec.state_partitions:
        return ""
    return ", as many as the most nodes have slots (Spark's default is 200)"
