"""The state of a plain script: whether Spark can rewrite it, and the rewrite before the script starts."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession

from rheostat.engines.spark.driver.checkpoint import STATE_FORMAT, Checkpoint
from rheostat.engines.spark.driver.error_text import plain
from rheostat.engines.spark.protocol import StateRewrite
from rheostat.engines.spark.spec import CheckpointRewrite

_STATE_SETTINGS = "spark.sql.streaming.stateStore."
_PROVIDER = f"{_STATE_SETTINGS}providerClass"


def refusal(spark: SparkSession, location: str | None) -> str | None:
    """Why the state of a checkpoint cannot be rewritten, and what the user can do; None: it can."""
    if location is None:
        return "its checkpoint is a temporary one: give the query a checkpointLocation"
    checkpoint = Checkpoint(spark, location)
    committed = checkpoint.last_committed()
    if committed is None:
        return "no batch is committed yet"
    provider = checkpoint.settings(committed).get(_PROVIDER) or str(spark.conf.get(_PROVIDER))
    if "RocksDB" not in provider:
        return (
            f"its checkpoint keeps state with {provider.rpartition('.')[2]}, which Spark cannot rewrite: "
            "with a new checkpointLocation, Rheostat keeps it with RocksDB, in the right number of partitions"
        )
    return None


def roll_back(spark: SparkSession, location: str) -> bool:
    """Forget a rewrite that was cut short; whether there was one."""
    return Checkpoint(spark, location).forget_unfinished_rewrite()


def rewrite(spark: SparkSession, wanted: CheckpointRewrite) -> StateRewrite:
    """Bring a checkpoint's state to the wanted number of partitions; if that fails, it stays as it was."""
    began, error = time.monotonic(), None
    try:
        _repartition(spark, Checkpoint(spark, wanted.checkpoint), wanted.partitions)
    except Exception as failure:
        error = plain(failure)
    return StateRewrite(wanted.checkpoint, time.monotonic() - began, error)


def _repartition(spark: SparkSession, checkpoint: Checkpoint, count: int | None) -> None:
    """Do it, or only roll back what was begun and not finished."""
    checkpoint.forget_unfinished_rewrite()
    checkpoint.complete_log()
    committed = checkpoint.last_committed()
    if count in (None, checkpoint.partitions(committed)):
        return
    try:
        with _set(spark, _state_settings(checkpoint, committed)):
            manager: Any = spark._streamingCheckpointManager
            manager.repartition(checkpoint.location, count)
    except Exception:
        checkpoint.forget_unfinished_rewrite()
        raise


def _state_settings(checkpoint: Checkpoint, committed: int | None) -> dict[str, str]:
    """How the checkpoint keeps its state; the script's own session, which knows it, does not exist yet."""
    logged = checkpoint.settings(committed)
    kept = {name: value for name, value in logged.items() if name.startswith(_STATE_SETTINGS)}
    return {**kept, STATE_FORMAT: checkpoint.state_format(committed)}


@contextmanager
def _set(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Session settings, for as long as a rewrite takes: the script begins with its own."""
    before = {name: spark.conf.get(name, None) for name in settings}
    for name in settings:
        spark.conf.set(name, settings[name])
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)
