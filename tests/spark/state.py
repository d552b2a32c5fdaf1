"""Finds where the state of an application is."""

from collections import Counter

from rheostat.engines.spark.engine import SparkEngine
from rheostat.model.decision import Status

from .support import newest_batch, plan


def change_nodes(engine: SparkEngine, nodes: int) -> None:
    outcome = engine.apply(plan(engine, nodes=nodes))
    assert outcome.status is Status.APPLIED, outcome.reason


def tasks_per_executor(engine: SparkEngine) -> list[int]:
    """Return the stateful operator's tasks per executor, in the newest batch."""
    return sorted(Counter(executors_with_state(engine)).values())


def executors_with_state(engine: SparkEngine) -> list[str]:
    """Return the executor of each task of the stateful operator, in the newest batch."""
    return [executor for executor, *_ in newest_batch(engine).stages[-1].each]
