"""A chain with known costs. Arguments: rows per second."""

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rheostat.engines.spark.application import Application

RATE = int(sys.argv[1]) if len(sys.argv) > 1 else 300


def burn(rows: DataFrame, rounds: int, column: str) -> DataFrame:
    """CPU time in proportion to the rounds, in Spark's own expressions."""
    return rows.withColumn(
        column, F.expr(f"aggregate(sequence(1, {rounds}), value, (hash, i) -> xxhash64(hash, i))")
    )


def load(spark: SparkSession) -> DataFrame:
    return spark.readStream.format("rate").option("rowsPerSecond", RATE).option("numPartitions", 1).load()


app = Application("chain", trigger_seconds=1)
rows = app.source("in", load)
rows = rows.operator("work", lambda df: burn(df, 400, "a"), max_parallelism=8)
rows = rows.operator("out", lambda df: burn(df.select("*", F.explode(F.array(F.lit(1), F.lit(2)))), 50, "b"))
rows.sink("nowhere", lambda df: df.writeStream.format("noop"))

if __name__ == "__main__":
    app.run()
