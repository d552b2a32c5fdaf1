"""Keeps a state per key. Arguments: rows per second, the mode, the kind of state (count or distinct)."""

import json
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

from rheostat import Application
from rheostat.apps.live_stream import LiveStream

RATE, MODE, STATE = int(sys.argv[1]), sys.argv[2], sys.argv[3]
FOLDER = Path(sys.argv[4]) if len(sys.argv) > 4 else None
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
    sums = (F.count("*").alias("n"), F.sum("value").alias("sum"), F.max("value").alias("most"))
    return rows.groupBy("key").agg(*sums)


def write(rows: DataFrame) -> DataStreamWriter:
    """One file per batch, by its number: a batch that runs twice writes the same file twice."""
    writer = rows.writeStream.outputMode("update")
    if FOLDER is None:
        return writer.format("noop")

    def keep(batch: DataFrame, number: int) -> None:
        FOLDER.mkdir(exist_ok=True)
        lines = [json.dumps(row.asDict()) for row in batch.collect()]
        (FOLDER / f"{number}.json").write_text("\n".join(lines))

    return writer.foreachBatch(keep)


app = Application("totals", trigger_seconds=2)
(
    app.source("in", load, arrived=LIVE.arrived if MODE == "realtime" else None)
    .operator("key", keyed)
    .operator("total", total, keys=["key"], stateful=True, min_parallelism=1, max_parallelism=8)
    .sink("totals", write)
)

if __name__ == "__main__":
    app.run()
