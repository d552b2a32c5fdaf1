"""The application under attack: Kafka, heavy work, a state per key, and a sink with one place per batch.

Arguments: the broker, the topic, the sink's folder, the folder in which steps are told, and
how often the work hashes each row.
"""

import json
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

from rheostat import Application
from rheostat.engines.spark.driver import rescale
from tests.chaos.steps import Steps

SERVERS, TOPIC, SINK = sys.argv[1], sys.argv[2], Path(sys.argv[3])
KEYS, SPAN = 8, 500
ROUNDS = int(sys.argv[5])
rescale.before_step = Steps(Path(sys.argv[4]))


def load(spark: SparkSession) -> DataFrame:
    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", SERVERS)
    rows = source.option("subscribe", TOPIC).option("startingOffsets", "earliest").load()
    return rows.select(F.col("value").cast("string").cast("long").alias("n"))


def work(rows: DataFrame) -> DataFrame:
    hashing = f"aggregate(sequence(1, {ROUNDS}), n, (hash, i) -> xxhash64(hash, i))"
    spans = (F.col("n") % KEYS).alias("key"), F.expr(f"n div {SPAN}").alias("span")
    return rows.select("n", *spans, F.expr(hashing).alias("hash"))


def total(rows: DataFrame) -> DataFrame:
    """Totals of each key per span of numbers; the rows themselves show which ones were counted."""
    sums = F.count("hash").alias("count"), F.sum("n").alias("sum"), F.collect_list("n").alias("rows")
    return rows.groupBy("key", "span").agg(*sums)


def write(rows: DataFrame) -> DataStreamWriter:
    def keep(batch: DataFrame, number: int) -> None:
        """A batch that runs twice takes the same place."""
        result = [row.asDict() for row in batch.collect()]
        SINK.mkdir(exist_ok=True)
        new = SINK / f"{number}.new"
        new.write_text(json.dumps(result))
        new.replace(SINK / f"{number}.json")

    return rows.writeStream.outputMode("update").foreachBatch(keep)


app = Application("chaos", trigger_seconds=1)
(
    app.source("in", load)
    .operator("work", work, max_parallelism=8)
    .operator("total", total, keys=["key", "span"], stateful=True, min_parallelism=1, max_parallelism=4)
    .sink("totals", write)
)

if __name__ == "__main__":
    app.run()
