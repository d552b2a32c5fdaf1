"""Counts the words that arrive in a topic. Arguments: a folder, a broker, the topic."""

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

folder, broker, topic = sys.argv[1:]
spark = SparkSession.builder.appName("kafka-source").getOrCreate()
lines = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", broker)
    .option("subscribe", topic)
    .option("startingOffsets", "earliest")
    .option("maxOffsetsPerTrigger", 100)
    .load()
)
words = lines.select(F.explode(F.split(F.col("value").cast("string"), " ")).alias("word"))


def keep(batch: DataFrame, number: int) -> None:
    batch.write.mode("overwrite").json(f"{folder}/out/{number}")


(
    words.groupBy("word")
    .count()
    .writeStream.outputMode("update")
    .foreachBatch(keep)
    .option("checkpointLocation", f"{folder}/checkpoint")
    .trigger(processingTime="1 second")
    .start()
    .awaitTermination()
)
