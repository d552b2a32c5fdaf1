"""The chain of the Engine's contract: work doubles the rows. Arguments: rows per second, the mode."""

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rheostat import Application
from rheostat.apps.live_stream import LiveStream

RATE, MODE = int(sys.argv[1]), sys.argv[2]
LIVE = LiveStream(f"constant:rate={RATE}:duration=20m")


def burn(rows: DataFrame, rounds: int, column: str) -> DataFrame:
    """CPU time in proportion to the rounds, in Spark's own expressions."""
    hashing = f"aggregate(sequence(1, {rounds}), value, (hash, i) -> xxhash64(hash, i))"
    return rows.withColumn(column, F.expr(hashing))


def load(spark: SparkSession) -> DataFrame:
    if MODE == "realtime":
        return LIVE.load(spark)
    return spark.readStream.format("rate").option("rowsPerSecond", RATE).option("numPartitions", 1).load()


def work(rows: DataFrame) -> DataFrame:
    return burn(rows, 4_000, "a").withColumn("copy", F.explode(F.array(F.lit(1), F.lit(2))))


app = Application("chain", trigger_seconds=2)
rows = app.source("in", load, arrived=LIVE.arrived if MODE == "realtime" else None)
rows = rows.operator("work", work, max_parallelism=8)
rows = rows.operator("out", lambda df: burn(df, 200, "b"), max_parallelism=8)
rows.sink("nowhere", lambda df: df.writeStream.format("noop").outputMode("update"))

if __name__ == "__main__":
    app.run()
