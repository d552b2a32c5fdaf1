"""Changes the number of state partitions: stop between two batches, rewrite the state, restart."""

import time
from collections.abc import Callable
from typing import Any

from rheostat.engines.spark.driver import plan_checks, script_state
from rheostat.engines.spark.driver.checkpoint import STATE_FORMAT
from rheostat.engines.spark.driver.error_text import plain
from rheostat.engines.spark.driver.runner import Runner
from rheostat.engines.spark.driver.supervisor import Supervisor
from rheostat.engines.spark.protocol import Rescaled
from rheostat.model.errors import RheostatError, UserError

RESTART_SECONDS = 120.0


def _nothing(_step: str) -> None:
    pass


before_step: Callable[[str], None] = _nothing  # called with each step's name; tests inject faults here


def refusal(runner: Runner, operator: str) -> str | None:
    """The reason why Spark cannot rewrite the state of this operator's query, or None."""
    if runner.app is None or runner.builder is None:
        return script_state.refusal(runner.session.spark, runner.script.checkpoint_of(operator))
    if runner.spec.mode == "realtime":
        part = next(part for part in runner.builder.parts if operator in part.steps)
        frame: Any = runner.builder.rows(part)
        if "Aggregate" in plan_checks.stateful_nodes(frame._jdf.queryExecution().analyzed()):
            return "Spark cannot rewrite the state of an aggregation in Real-Time Mode"
    if "RocksDB" not in str(runner.session.spark.conf.get("spark.sql.streaming.stateStore.providerClass")):
        return "Spark rewrites only the state of the RocksDB provider"
    return None


def rescale(runner: Runner, operator: str, count: int) -> Rescaled:
    """Give the stateful operators of a query `count` instances; if that fails, it continues as before."""
    if runner.app is None:
        raise UserError("the state of a script is rewritten before it starts")
    if why := refusal(runner, operator):
        raise UserError(why)
    spark, supervisor = runner.session.spark, runner.query_of(operator)
    checkpoint = supervisor.checkpoint
    with supervisor.lock:
        if checkpoint.partitions(checkpoint.last_committed()) == count:
            return Rescaled(0.0, 0.0)
        before_step("stop")
        _stop_at_boundary(supervisor)
        stopped = time.monotonic()
        try:
            if runner.spec.mode == "realtime":
                spark.conf.set(STATE_FORMAT, "2")
            before_step("rewrite")
            manager: Any = spark._streamingCheckpointManager
            manager.repartition(checkpoint.location, count)
        except Exception as error:
            checkpoint.forget_unfinished_rewrite()
            supervisor.start()
            raise RheostatError(f"the state could not be rewritten: {plain(error)}") from None
        finally:
            if runner.spec.mode == "realtime":
                spark.conf.unset(STATE_FORMAT)
        rewritten = time.monotonic()
        before_step("restart")
        supervisor.state_partitions = count
        supervisor.start()
    _wait_until_running(supervisor)
    return Rescaled(time.monotonic() - stopped, rewritten - stopped)


def _stop_at_boundary(supervisor: Supervisor) -> None:
    """Stop, and finish a batch that the stop interrupted: Spark rewrites no state with an open batch."""
    checkpoint = supervisor.checkpoint
    if supervisor.query is None:
        raise RheostatError("there is no query to rescale")
    supervisor.stop()
    if not checkpoint.at_boundary():
        supervisor.start(once=True)
        if supervisor.query is not None:
            supervisor.query.awaitTermination()
    if not checkpoint.at_boundary():
        supervisor.start()
        raise RheostatError("the query could not be stopped between two batches; it goes on")


def _wait_until_running(supervisor: Supervisor) -> None:
    """Wait until the restarted query begins its first batch."""
    until = time.monotonic() + RESTART_SECONDS
    while time.monotonic() < until:
        query = supervisor.query
        if query is None or not query.isActive:
            return  # it died; the supervisor restarts it
        if query.status["isTriggerActive"] and "Initializing" not in query.status["message"]:
            return
        if query.lastProgress is not None:
            return
        time.sleep(0.02)
    raise RheostatError(f"the query did not run again within {RESTART_SECONDS:g} s")
