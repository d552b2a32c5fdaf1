"""From topic to topic. Arguments: the broker, the topic in, the topic out, rounds of work per row."""

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

from rheostat import Application

SERVERS, TOPIC_IN, TOPIC_OUT, ROUNDS = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])


def load(spark: SparkSession) -> DataFrame:
    stream = spark.readStream.format("kafka").option("kafka.bootstrap.servers", SERVERS)
    return stream.option("subscribe", TOPIC_IN).option("startingOffsets", "earliest").load()


def parse(rows: DataFrame) -> DataFrame:
    row = F.from_json(F.col("value").cast("string"), "n bigint, key bigint, sent bigint")
    return rows.select(row.alias("row")).select("row.*")


def work(rows: DataFrame) -> DataFrame:
    hashing = f"aggregate(sequence(1, {ROUNDS}), n, (hash, i) -> xxhash64(hash, i))"
    return rows.withColumn("hash", F.expr(hashing))


def write(rows: DataFrame) -> DataStreamWriter:
    out = rows.select(F.to_json(F.struct("n", "sent")).alias("value"))
    writer = out.writeStream.format("kafka").option("kafka.bootstrap.servers", SERVERS)
    return writer.option("topic", TOPIC_OUT).outputMode("update")


app = Application("kafka_chain", trigger_seconds=2)
parsed = app.source("in", load).operator("parse", parse, max_parallelism=4)
parsed.operator("work", work, max_parallelism=4).sink("out", write)

if __name__ == "__main__":
    app.run()
