"""Changes the number of state partitions: stop between two batches, rewrite the state, start again."""

import time
from dataclasses import dataclass
from typing import Any

from rheostat.engines.spark import checks
from rheostat.engines.spark.checkpoint import Checkpoint
from rheostat.engines.spark.host import Host, plain
from rheostat.model.errors import RheostatError, UserError

RESTART_SECONDS = 120.0
_FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"
_PARTITIONS = "spark.sql.shuffle.partitions"


@dataclass(frozen=True)
class Rescaled:
    """How it went."""

    pause_seconds: float  # from the stop to the first batch after it
    rewrite_seconds: float


def refusal(host: Host) -> str | None:
    """Why Spark cannot rewrite this application's state, if it cannot."""
    if host.app is None:
        return "only an application of the Topology API can be stopped and started again by Rheostat"
    if host.spec.mode == "realtime":
        frame: Any = host.app.rows(host.session.spark)
        if "Aggregate" in checks.stateful_nodes(frame._jdf.queryExecution().analyzed()):
            return "Spark cannot rewrite the state of an aggregation in Real-Time Mode"
    if "RocksDB" not in str(host.session.spark.conf.get("spark.sql.streaming.stateStore.providerClass")):
        return "Spark rewrites state of the RocksDB provider only"
    return None


def rescale(host: Host, count: int) -> Rescaled:
    """Give the stateful operators `count` instances; if that fails, the query goes on as it was."""
    if why := refusal(host):
        raise UserError(why)
    spark = host.session.spark
    with host.lock:
        checkpoint = Checkpoint(spark, host.spec.checkpoint)
        before = checkpoint.partitions(checkpoint.last_committed())
        if before == count:
            return Rescaled(0.0, 0.0)
        _stop_at_boundary(host, checkpoint)
        stopped = time.monotonic()
        try:
            if host.spec.mode == "realtime":
                spark.conf.set(_FORMAT, "2")
            manager: Any = spark._streamingCheckpointManager
            manager.repartition(host.spec.checkpoint, count)
        except Exception as error:
            checkpoint.forget_unfinished_rewrite()
            host.start()
            raise RheostatError(f"the state could not be rewritten: {plain(error)}") from None
        finally:
            if host.spec.mode == "realtime":
                spark.conf.unset(_FORMAT)
        rewritten = time.monotonic()
        spark.conf.set(_PARTITIONS, str(count))
        host.start()
    _wait_until_running(host)
    return Rescaled(time.monotonic() - stopped, rewritten - stopped)


def _stop_at_boundary(host: Host, checkpoint: Checkpoint) -> None:
    """Stop, and finish a batch that the stop left half done: Spark rewrites no open batch."""
    query = host.query
    if query is None:
        raise RheostatError("there is no query to rescale")
    host.wait_for_boundary()
    query.stop()
    if not checkpoint.at_boundary():
        host.start(once=True)
        if host.query is not None:
            host.query.awaitTermination()
    if not checkpoint.at_boundary():
        host.start()
        raise RheostatError("the query could not be stopped between two batches; it goes on")


def _wait_until_running(host: Host) -> None:
    """Wait until the new run has begun its first batch."""
    until = time.monotonic() + RESTART_SECONDS
    while time.monotonic() < until:
        query = host.query
        if query is None or not query.isActive:
            return  # it died; the supervisor starts it again
        if query.status["isTriggerActive"] and "Initializing" not in query.status["message"]:
            return
        if query.lastProgress is not None:
            return
        time.sleep(0.02)
    raise RheostatError(f"the query did not run again within {RESTART_SECONDS:g} s")
