"""The demo: events are parsed, scored at a price in CPU, and counted per user.

Arguments: the load curve, its seed, and the mode. Read it as an example of the Topology API.
"""

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rheostat.apps.load import LiveStream, stream
from rheostat.engines.spark.application import Application

CURVE, SEED, MODE = sys.argv[1], int(sys.argv[2]), sys.argv[3]
USERS = 500
ROUNDS = {"microbatch": 260, "realtime": 200}[MODE]  # of rounds; a row costs a millisecond or two


LIVE = LiveStream(CURVE, SEED)


def events(spark: SparkSession) -> DataFrame:
    """Event numbers, at the curve's rate."""
    return LIVE.load(spark) if MODE == "realtime" else stream(spark, CURVE, SEED)


def parse(rows: DataFrame) -> DataFrame:
    """Who did it, and what."""
    return rows.select(
        "value",
        (F.xxhash64("value") % USERS).alias("user"),
        F.sha2(F.col("value").cast("string"), 256).alias("what"),
    )


def score(rows: DataFrame) -> DataFrame:
    """Stands for a model: costs CPU in proportion to the rounds."""
    inner = f"aggregate(sequence(1, {ROUNDS}), hash, (h, j) -> xxhash64(h, j))"
    hashing = f"aggregate(sequence(1, {ROUNDS}), xxhash64(what), (hash, i) -> {inner})"
    return rows.withColumn("score", F.expr(hashing) % 100)


def count(rows: DataFrame) -> DataFrame:
    """Events per user so far, and their mean score: this is the state."""
    return rows.groupBy("user").agg(F.count("*").alias("events"), F.avg("score").alias("score"))


app = Application("demo", trigger_seconds=2)
stateful = 1 if MODE == "realtime" else 2  # instances; in Real-Time Mode each holds a slot
(
    app.source("events", events, arrived=LIVE.arrived if MODE == "realtime" else None)
    .operator("parse", parse, max_parallelism=8)
    .operator("score", score, max_parallelism=16)
    .operator("count", count, keys=["user"], stateful=True, max_parallelism=stateful)
    .sink("nowhere", lambda rows: rows.writeStream.format("noop").outputMode("update"))
)

if __name__ == "__main__":
    app.run()
