"""A chain of five operators whose costs are known: rounds of the same hash, in these proportions."""

import sys

from costs import ROUNDS  # lies beside this script
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rheostat import Application


def burn(rows: DataFrame, column: str, rounds: int) -> DataFrame:
    """CPU time in proportion to the rounds, in Spark's own expressions."""
    hashing = f"aggregate(sequence(1, {rounds}), value, (hash, i) -> xxhash64(hash, i))"
    return rows.withColumn(column, F.expr(hashing))


def load(spark: SparkSession) -> DataFrame:
    rate = sys.argv[1] if len(sys.argv) > 1 else "200"
    return spark.readStream.format("rate").option("rowsPerSecond", rate).option("numPartitions", 1).load()


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
