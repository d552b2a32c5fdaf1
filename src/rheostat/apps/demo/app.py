"""The demo: events are parsed, scored at a price in CPU, and counted per user.

Read it as an example of the Topology API.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from rheostat.apps.inputs import Input, is_real_time, read_input
from rheostat.engines.spark.driver.application import Application

USERS = 500
ROUNDS = 260  # of rounds; a row costs a millisecond or two
REALTIME_ROUNDS = 200


def parse(rows: DataFrame) -> DataFrame:
    """Extract the user and the action."""
    return rows.select(
        "value",
        (F.xxhash64("value") % USERS).alias("user"),
        F.sha2(F.col("value").cast("string"), 256).alias("what"),
    )


def score(rows: DataFrame) -> DataFrame:
    """Stand in for a model: cost CPU in proportion to the rounds."""
    rounds = REALTIME_ROUNDS if is_real_time() else ROUNDS
    inner = f"aggregate(sequence(1, {rounds}), hash, (h, j) -> xxhash64(h, j))"
    hashing = f"aggregate(sequence(1, {rounds}), xxhash64(what), (hash, i) -> {inner})"
    return rows.withColumn("score", F.expr(hashing) % 100)


def count(rows: DataFrame) -> DataFrame:
    """Count events per user, and average their score: this is the state."""
    return rows.groupBy("user").agg(F.count("*").alias("events"), F.avg("score").alias("score"))


def build(given: Input) -> Application:
    """The application, ready to run."""
    app = Application("demo", trigger_seconds=2)
    stateful = 1 if is_real_time() else 2  # instances; in Real-Time Mode each holds a slot
    (
        given.read(app, "events")
        .operator("parse", parse, max_parallelism=8)
        .operator("score", score, max_parallelism=16)
        .operator("count", count, keys=["user"], stateful=True, max_parallelism=stateful)
        .sink("nowhere", given.sink())
    )
    return app


if __name__ == "__main__":
    build(read_input(__doc__)).run()
