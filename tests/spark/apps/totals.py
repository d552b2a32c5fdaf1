"""Keeps a state per key. Arguments: rows per second, the mode, the kind of state (count or distinct)."""

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rheostat.apps.load import LiveStream
from rheostat.engines.spark.application import Application

RATE, MODE, STATE = int(sys.argv[1]), sys.argv[2], sys.argv[3]
KEYS = 50


LIVE = LiveStream(f"constant:rate={RATE}:duration=10m")


def load(spark: SparkSession) -> DataFrame:
    if MODE == "realtime":
        return LIVE.load(spark)
    return spark.readStream.format("rate").option("rowsPerSecond", RATE).option("numPartitions", 1).load()


def keyed(rows: DataFrame) -> DataFrame:
    return rows.select("value", (F.col("value") % KEYS).alias("key"))


def total(rows: DataFrame) -> DataFrame:
    if STATE == "distinct":
        return rows.dropDuplicates(["key"])
    return rows.groupBy("key").agg(F.count("*").alias("n"), F.sum("value").alias("sum"))


app = Application("totals", trigger_seconds=1)
(
    app.source("in", load, arrived=LIVE.arrived if MODE == "realtime" else None)
    .operator("key", keyed)
    .operator("total", total, keys=["key"], stateful=True, min_parallelism=1, max_parallelism=8)
    .sink("nowhere", lambda rows: rows.writeStream.format("noop").outputMode("update"))
)

if __name__ == "__main__":
    app.run()
