"""Which orders were paid within ten seconds. Argument: a folder with clicks, the orders, and payments."""

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

folder = sys.argv[1]
spark = SparkSession.builder.appName("join-streams").getOrCreate()


def stream(name: str) -> DataFrame:
    rows = spark.readStream.schema("user INT, page STRING, at TIMESTAMP").option("maxFilesPerTrigger", 1)
    return rows.json(f"{folder}/{name}").withWatermark("at", "4 seconds")


orders = stream("clicks").select(F.col("user").alias("customer"), "page", F.col("at").alias("ordered"))
payments = stream("payments").select(F.col("user").alias("payer"), F.col("at").alias("paid"))
paid = orders.join(
    payments, F.expr("customer = payer AND paid BETWEEN ordered AND ordered + INTERVAL 10 SECONDS")
)


def keep(batch: DataFrame, number: int) -> None:
    batch.coalesce(1).write.mode("overwrite").json(f"{folder}/out/{number}")


paid.writeStream.foreachBatch(keep).option("checkpointLocation", f"{folder}/checkpoint").start()
spark.streams.awaitAnyTermination()
