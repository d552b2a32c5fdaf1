"""Counts per key: the first seconds make the keys, after that they are only updated. Arguments: keys."""

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rheostat import Application

KEYS = int(sys.argv[1])
FILLING = max(1, KEYS // 20)  # keys made per row of the source


def load(spark: SparkSession) -> DataFrame:
    ticks = spark.readStream.format("rate").option("rowsPerSecond", 2).option("numPartitions", 1).load()
    first, some = f"value * {FILLING}", min(FILLING, 100)
    keys = f"if(value < 20, sequence({first}, {first} + {FILLING} - 1), sequence(0, {some} - 1))"
    return ticks.select(F.explode(F.expr(keys)).alias("key"))


app = Application("keys", trigger_seconds=1)
rows = app.source("in", load).operator(
    "count",
    lambda df: df.groupBy("key").count(),
    keys=["key"],
    stateful=True,
    min_parallelism=1,
    max_parallelism=8,
)
rows.sink("x", lambda df: df.writeStream.format("noop").outputMode("update"))

if __name__ == "__main__":
    app.run()
