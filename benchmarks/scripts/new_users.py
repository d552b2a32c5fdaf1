"""NEXMark's query 8 as a data engineer writes it: who opened an auction within ten seconds of signing up.

Arguments: a folder for results and checkpoint, events per second. Nothing here knows of Rheostat.
"""

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

folder, rate = sys.argv[1], int(sys.argv[2])
spark = SparkSession.builder.appName("new-users").getOrCreate()


def events(per_second: int) -> DataFrame:
    rows = spark.readStream.format("rate").option("rowsPerSecond", per_second).option("numPartitions", 2)
    return rows.load()


people = events(rate // 4).select(
    F.col("timestamp").alias("joined"), F.col("value").alias("person"), F.expr("uuid()").alias("name")
)
auctions = events(rate - rate // 4).select(
    F.col("timestamp").alias("opened"), F.expr("value DIV 3").alias("seller"), F.expr("uuid()").alias("item")
)
new = people.withWatermark("joined", "5 seconds").join(
    auctions.withWatermark("opened", "5 seconds"),
    F.expr(
        "person = seller AND opened BETWEEN joined - INTERVAL 10 SECONDS AND joined + INTERVAL 10 SECONDS"
    ),
)


def keep(batch: DataFrame, number: int) -> None:
    batch.groupBy("person").count().write.mode("overwrite").parquet(f"{folder}/new/{number}")


new.writeStream.queryName("new_users").foreachBatch(keep).option(
    "checkpointLocation", f"{folder}/checkpoint"
).trigger(processingTime="3 seconds").start().awaitTermination()
