"""Builds queries that a mode can or cannot run, and prints what the checks say of each, as JSON."""

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rheostat import Application
from rheostat.apps.live_stream import LiveStream
from rheostat.engines.spark.driver import plan_checks
from rheostat.engines.spark.driver.builder import Builder
from rheostat.engines.spark.driver.rescale import refusal
from rheostat.model.errors import UserError

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
live = LiveStream("constant:rate=1:duration=1s")


def rate(session: SparkSession) -> DataFrame:
    return session.readStream.format("rate").load()


@F.udf("long")
def twice(value: int) -> int:
    return 2 * value


def of_two_streams(rows: DataFrame) -> DataFrame:
    return rows.join(live.load(spark).withColumnRenamed("value", "other"), F.expr("value = other"))


LOADS: dict[str, Callable[[SparkSession], DataFrame]] = {"rate": rate, "live": live.load}
STEPS: dict[str, Callable[[DataFrame], DataFrame]] = {
    "filter": lambda rows: rows.where("value > 1").withColumn(
        "x", F.sha2(F.col("value").cast("string"), 256)
    ),
    "python": lambda rows: rows.withColumn("x", twice("value")),
    "join": of_two_streams,
    "small table": lambda rows: rows.join(
        F.broadcast(spark.range(3).withColumnRenamed("id", "value")), "value"
    ),
    "aggregate": lambda rows: rows.groupBy("value").count(),
    "explode": lambda rows: rows.withColumn("x", F.explode(F.array(F.lit(1), F.lit(2)))),
    "batch": lambda rows: spark.range(3),
    "limit": lambda rows: rows.limit(3),
}


def verdict(source: str, step: str, mode: str) -> str:
    app = Application("plan")
    app.source("in", LOADS[source]).operator("step", STEPS[step]).sink("x", lambda rows: rows.writeStream)
    builder = Builder(app, spark, None)
    rows: Any = builder.rows(builder.parts[0])
    try:
        plan_checks.check_plan(rows._jdf.queryExecution().analyzed(), mode)
    except UserError as error:
        return str(error)
    return "ok"


def refused(source: str, mode: str) -> str:
    """Why the state of an aggregation cannot be rewritten, if it cannot."""
    app = Application("plan")
    rows = app.source("in", LOADS[source])
    rows = rows.operator("step", STEPS["aggregate"], keys=["value"], stateful=True)
    rows.sink("x", lambda frame: frame.writeStream)
    runner: Any = SimpleNamespace(
        app=app,
        builder=Builder(app, spark, None),
        spec=SimpleNamespace(mode=mode),
        session=SimpleNamespace(spark=spark),
    )
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", "a.RocksDBStateStoreProvider")
    return refusal(runner, "step") or "ok"


if __name__ == "__main__":
    result = {
        f"{mode} {source} {step}": verdict(source, step, mode)
        for mode in ("microbatch", "realtime")
        for source in LOADS
        for step in STEPS
    }
    result |= {f"rescale {mode}": refused("live", mode) for mode in ("microbatch", "realtime")}
    print(json.dumps(result))
    spark.stop()
