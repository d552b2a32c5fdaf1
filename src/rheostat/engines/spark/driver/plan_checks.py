"""Checks a query's plan for what its mode cannot run, before the query starts."""

from collections.abc import Iterator
from typing import Any

from rheostat.model.errors import UserError

# The operators that Real-Time Mode supports, by their names in Spark's logical plan.
_REALTIME = {
    "Aggregate", "AppendColumns", "CollectMetrics", "DataSourceV2Relation", "Deduplicate",
    "DeserializeToObject", "EventTimeWatermark", "Expand", "Filter", "Generate", "Join", "LocalRelation",
    "LogicalRelation", "MapElements", "MapPartitions", "Project", "Range", "Repartition",
    "RepartitionByExpression", "ResolvedHint", "SerializeFromObject", "SubqueryAlias",
    "TransformWithState", "Union", "View",
}  # fmt: skip
_STATE = {
    "Aggregate", "Deduplicate", "DeduplicateWithinWatermark", "Distinct", "FlatMapGroupsWithState",
    "TransformWithState", "FlatMapGroupsInPandasWithState", "TransformWithStateInPySpark",
}  # fmt: skip


def check_plan(plan: Any, mode: str) -> None:
    """Refuse what the mode cannot run before anything starts; `plan` is the analysed plan in the JVM."""
    nodes = list(_walk(plan))
    if not plan.isStreaming():
        raise UserError("the application reads no stream: begin with spark.readStream")
    if mode != "realtime":
        return
    for node in nodes:
        name = str(node.nodeName())
        if node.children().isEmpty():
            _check_source(node)
        elif _runs_python(node):
            raise UserError(
                "Real-Time Mode runs no Python function: use Spark's own expressions, or microbatch"
            )
        elif name == "Join" and all(node.children().apply(i).isStreaming() for i in range(2)):
            raise UserError("Real-Time Mode joins no two streams: use microbatch, or join with a small table")
        elif name.split(maxsplit=1)[0] not in _REALTIME:
            raise UserError(f"Real-Time Mode cannot run {name}: use microbatch, or leave it out")


def stateful_nodes(plan: Any) -> list[str]:
    """The names of the nodes that keep state, joins of two streams included."""
    names = []
    for node in _walk(plan):
        name = str(node.nodeName())
        streams = node.isStreaming()
        join = name == "Join" and all(node.children().apply(i).isStreaming() for i in range(2))
        if join or (streams and name in _STATE):
            names.append(name)
    return names


def _check_source(node: Any) -> None:
    if not node.isStreaming():
        return
    name = str(node.sourceName())
    in_memory = name == "memory" and "LowLatency" in str(node.table().stream().getClass().getName())
    if name != "kafka" and not in_memory:
        raise UserError(
            f"Real-Time Mode reads from Kafka only, not from {name!r}: use a Kafka source, or microbatch"
        )


def _runs_python(node: Any) -> bool:
    """Whether a node is a Python operator or calls a Python function."""
    if any(word in str(node.nodeName()) for word in ("Python", "Pandas", "Arrow")):
        return True
    roots = node.expressions()
    expressions = (part for i in range(roots.size()) for part in _walk(roots.apply(i)))
    return any("PythonUD" in str(expression.getClass().getSimpleName()) for expression in expressions)


def _walk(node: Any) -> Iterator[Any]:
    yield node
    children = node.children()
    for index in range(children.size()):
        yield from _walk(children.apply(index))
