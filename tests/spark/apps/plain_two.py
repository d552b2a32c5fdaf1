"""A plain PySpark script that starts two queries and returns. Argument: a folder for what the second saw."""

import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

FOLDER = Path(sys.argv[1])
spark = SparkSession.builder.appName("two").getOrCreate()


def count_parts(batch: DataFrame, _number: int) -> None:
    new = FOLDER / "parts.new"
    new.write_text(str(batch.rdd.getNumPartitions()))
    new.replace(FOLDER / "parts")


def begin(name: str) -> StreamingQuery:
    rows = spark.readStream.format("rate").option("rowsPerSecond", 20).option("numPartitions", 1).load()
    writer = rows.repartition(2).writeStream.queryName(name).trigger(processingTime="1 second")
    return (writer.foreachBatch(count_parts) if name == "second" else writer.format("noop")).start()


begin("first")
begin("second")
