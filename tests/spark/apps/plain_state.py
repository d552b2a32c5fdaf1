"""A plain PySpark script that keeps state and sets nothing.

Arguments: a folder for all its files, rows per second, perhaps "forever": then it starts its query again
whenever that ends, in a session of its own.
"""

import json
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

KEYS = 50


def start(spark: SparkSession, folder: Path, rate: int) -> StreamingQuery:
    """Totals of each key, one file per batch by its number: a batch that runs twice writes the same file."""

    def keep(batch: DataFrame, number: int) -> None:
        lines = [json.dumps(row.asDict()) for row in batch.collect()]
        new = folder / "totals" / f"{number}.new"
        new.write_text("\n".join(lines))
        new.replace(folder / "totals" / f"{number}.json")

    (folder / "totals").mkdir(parents=True, exist_ok=True)
    rows = spark.readStream.format("rate").option("rowsPerSecond", rate).option("numPartitions", 1).load()
    sums = (F.count("*").alias("n"), F.sum("value").alias("sum"), F.max("value").alias("most"))
    totals = rows.groupBy((F.col("value") % KEYS).alias("key")).agg(*sums)
    writer = totals.writeStream.outputMode("update").foreachBatch(keep)
    return (
        writer.option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(processingTime="1 second")
        .start()
    )


if __name__ == "__main__":
    session = SparkSession.builder.appName("plain").getOrCreate()
    forever = "forever" in sys.argv
    own = session.newSession() if forever else session
    start(own, Path(sys.argv[1]), int(sys.argv[2])).awaitTermination()
    while forever:
        start(own, Path(sys.argv[1]), int(sys.argv[2])).awaitTermination()
