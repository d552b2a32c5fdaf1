"""A plain PySpark script that keeps state, writes files, and sets nothing.

Arguments: a folder for all its files, rows per second, perhaps "forever": then it starts its query again
whenever that ends, in a session of its own.
"""

import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

KEYS = 50


def start(spark: SparkSession, folder: Path, rate: int) -> StreamingQuery:
    """Totals of each key and second, in files."""
    rows = spark.readStream.format("rate").option("rowsPerSecond", rate).option("numPartitions", 1).load()
    sums = (F.count("*").alias("n"), F.sum("value").alias("sum"), F.max("value").alias("most"))
    seconds = rows.withWatermark("timestamp", "0 seconds").groupBy(
        F.window("timestamp", "1 second"), (F.col("value") % KEYS).alias("key")
    )
    writer = seconds.agg(*sums).drop("window").writeStream.format("json").outputMode("append")
    return (
        writer.option("path", str(folder / "totals"))
        .option("checkpointLocation", str(folder / "checkpoint"))
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
