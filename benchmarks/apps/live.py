"""A chain whose middle operator costs CPU. Arguments: rows per second."""

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rheostat import Application

RATE = int(sys.argv[1])
HASHING = "aggregate(sequence(1, 3000), value, (hash, i) -> xxhash64(hash, i))"


def load(spark: SparkSession) -> DataFrame:
    return spark.readStream.format("rate").option("rowsPerSecond", RATE).option("numPartitions", 1).load()


app = Application("live", trigger_seconds=1)
rows = app.source("in", load).operator("work", lambda df: df.withColumn("a", F.expr(HASHING)))
rows.operator("out", lambda df: df.selectExpr("*", "a % 7 as b")).sink(
    "x", lambda df: df.writeStream.format("noop")
)

if __name__ == "__main__":
    app.run()
