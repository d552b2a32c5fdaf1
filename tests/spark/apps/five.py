"""A chain of five operators of known cost. Arguments: rows per second, rounds of a hash per operator."""

import json
import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rheostat import Application

RATE, ROUNDS = int(sys.argv[1]), json.loads(sys.argv[2])


def burn(rows: DataFrame, column: str, rounds: int) -> DataFrame:
    """CPU time in proportion to the rounds, in Spark's own expressions."""
    hashing = f"aggregate(sequence(1, {rounds}), value, (hash, i) -> xxhash64(hash, i))"
    return rows.withColumn(column, F.expr(hashing))


def load(spark: SparkSession) -> DataFrame:
    return spark.readStream.format("rate").option("rowsPerSecond", RATE).option("numPartitions", 1).load()


def third(rows: DataFrame) -> DataFrame:
    """Two rows for one, so that the rows differ along the chain."""
    return burn(rows.withColumn("copy", F.explode(F.array(F.lit(1), F.lit(2)))), "c", ROUNDS["c"])


app = Application("five", trigger_seconds=2)
rows = app.source("in", load)
rows = rows.operator("a", lambda df: burn(df, "a", ROUNDS["a"]))
rows = rows.operator("b", lambda df: burn(df.where("value % 4 != 0"), "b", ROUNDS["b"]), keys=["value"])
rows = rows.operator("c", third)
rows = rows.operator("d", lambda df: burn(df, "d", ROUNDS["d"]))
rows = rows.operator("e", lambda df: burn(df, "e", ROUNDS["e"]))
rows.sink("nowhere", lambda df: df.writeStream.format("noop"))

if __name__ == "__main__":
    app.run()
