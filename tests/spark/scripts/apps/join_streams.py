"""Which orders were paid within ten seconds, and for what.

Argument: a folder with clicks, which are the orders, payments and a table of pages.
"""

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
    pages = spark.read.option("header", True).csv(f"{folder}/pages.csv")
    batch.join(pages, "page", "left_outer").write.mode("overwrite").json(f"{folder}/out/{number}")


paid.writeStream.foreachBatch(keep).option("checkpointLocation", f"{folder}/checkpoint").start()
spark.streams.awaitAnyTermination()
