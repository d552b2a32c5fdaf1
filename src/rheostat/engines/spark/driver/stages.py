"""The stages of a query's batches, read from Spark's physical plan, and the operators they belong to."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from rheostat.engines.spark.protocol import QueryStage

# The name of a stage whose operator has none: that of the first of these nodes that it contains.
_NAMES = {
    "SymmetricHashJoin": "join",
    "SessionWindowStateStoreSave": "session",
    "StateStoreSave": "aggregate",
    "StatefulStreamlineAggregate": "aggregate",
    "StreamingDeduplicate": "deduplicate",
    "StreamingGlobalLimit": "limit",
    "FlatMapGroupsWithState": "stateful",
    "FlatMapGroupsInPandasWithState": "stateful",
    "TransformWithState": "stateful",
    "MapInArrow": "python",
    "MapInPandas": "python",
    "ArrowEvalPython": "python",
    "BatchEvalPython": "python",
    "Generate": "explode",
    "Scan": "scan",
}
_STATE = ("join", "aggregate", "deduplicate", "session", "limit", "stateful")


@dataclass(frozen=True)
class Stage:
    """One stage of each batch; stages are listed from the source up."""

    operator: str
    parents: tuple[int, ...]
    nodes: tuple[str, ...]
    stateful: bool
    shuffle: int | None  # the rank of the script's own shuffle at its beginning, if any
    tasks: int | None  # as planned; None: determined by its source, 0: its source had no rows in that batch
    kind: str = "project"

    @property
    def described(self) -> QueryStage:
        """The part that the controller needs."""
        return QueryStage(self.operator, self.parents, self.stateful, self.shuffle, self.tasks)


def read(plan: Any, prefix: str | None = None) -> list[Stage]:
    """Cut a physical plan (a JVM object) into its stages; `StageTap.java` numbers them in the same order.

    They are named after the observe() that owns them or, with a prefix, by their number and what they do.
    """
    stages: list[Stage] = []
    _cut(plan, None, stages, [0])
    if prefix is None:
        return stages
    return [
        replace(stage, operator=f"{prefix}{number}-{stage.kind}") for number, stage in enumerate(stages, 1)
    ]


def _cut(top: Any, owner_above: str | None, stages: list[Stage], ranks: list[int]) -> int:
    """Append the stage that ends in `top`, after those below it, and return its index."""
    nodes: list[str] = []
    owners: list[str] = []
    shuffles: list[Any] = []
    partitions: int | None = None
    for node in _within_stage(top, shuffles):
        nodes.append(_name(node))
        if nodes[-1] == "MicroBatchScan":
            partitions = (partitions or 0) + _partitions(node)
        if nodes[-1].startswith("LocalTableScan") and node.stream().isDefined():
            partitions = partitions or 0  # a stream that has no rows in this batch
        if nodes[-1] == "CollectMetrics":
            owners.append(node.name())
    owner = owners[-1] if owners else owner_above  # the lowest: what lies above it waits for the next shuffle
    parents = [_cut(shuffle.child(), owner, stages, ranks) for shuffle in shuffles]
    rank = None
    if len(shuffles) == 1 and "REPARTITION_BY" in str(shuffles[0].shuffleOrigin()):
        ranks[0] += 1
        rank = ranks[0]
    kind = next((name for part, name in _NAMES.items() if any(part in node for node in nodes)), "project")
    name = owner or f"{len(stages) + 1}-{kind}"
    tasks = int(shuffles[0].outputPartitioning().numPartitions()) if shuffles else partitions
    stages.append(Stage(name, tuple(parents), tuple(nodes), kind in _STATE, rank, tasks, kind))
    return len(stages) - 1


def _within_stage(node: Any, shuffles: list[Any]) -> Iterator[Any]:
    """Walk down to the shuffles at the beginning of the stage; broadcasts are not among our stages."""
    if _name(node) == "BroadcastExchange":
        return
    if _name(node) == "Exchange":
        shuffles.append(node)
        return
    yield node
    children = node.children()
    for index in range(children.size()):
        yield from _within_stage(children.apply(index), shuffles)


def _name(node: Any) -> str:
    return str(node.nodeName())


def _partitions(scan: Any) -> int:
    """The number of a source's partitions; a batch plans no tasks for empty Kafka partitions."""
    planned = int(scan.inputPartitions().size())
    return max(planned, _topic_partitions(str(scan.end().json()))) if planned else 0


def _topic_partitions(offset: str) -> int:
    """The number of partitions in a Kafka offset; 0 for other sources.

    >>> _topic_partitions('{"lines": {"0": 7, "1": 0}}'), _topic_partitions('{"logOffset": 3}')
    (2, 0)
    """
    try:
        topics = json.loads(offset)
    except ValueError:
        return 0
    by_topic = topics.values() if isinstance(topics, dict) else ()
    return sum(len(partitions) for partitions in by_topic if isinstance(partitions, dict))
