"""A graph on Kafka: events are read once, counted by two operators side by side, and their counts meet again.

rheostat kafka up
rheostat load run sine:low=50:high=400:period=2m:duration=20m --kafka events &
rheostat run examples/graph/counts.py --kafka 127.0.0.1:9092
"""

import os
from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rheostat import Application

SERVERS = os.environ.get("SERVERS", "127.0.0.1:9092")


def load(spark: SparkSession) -> DataFrame:
    stream = spark.readStream.format("kafka").option("kafka.bootstrap.servers", SERVERS)
    return stream.option("subscribe", "events").load()


def parse(rows: DataFrame) -> DataFrame:
    event = F.from_json(F.col("value").cast("string"), "n bigint, key bigint, sent bigint")
    return rows.select(event.alias("event")).select("event.*")


def counted(name: str, column: str) -> Callable[[DataFrame], DataFrame]:
    """Count events by a column, and say which count it is."""
    return lambda rows: (
        rows.groupBy(F.expr(column).alias("value")).count().select(F.lit(name).alias("by"), "value", "count")
    )


app = Application("counts", trigger_seconds=5)
events = app.source("events", load).operator("parse", parse)
by_key = events.operator("by_key", counted("key", "key % 10"), stateful=True)
by_second = events.operator("by_second", counted("second", "sent div 1000 % 60"), stateful=True)
both = by_key.merge(by_second).operator("label", lambda rows: rows.withColumn("at", F.current_timestamp()))
both.sink("out", lambda rows: rows.writeStream.format("noop").outputMode("update"))

if __name__ == "__main__":
    app.run()
