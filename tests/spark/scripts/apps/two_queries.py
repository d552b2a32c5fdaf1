"""Long pages, found by a Python function, and the totals of users. Argument: a folder with the clicks."""

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

folder = sys.argv[1]
spark = SparkSession.builder.appName("two-queries").getOrCreate()


@F.udf("int")
def length(page: str) -> int:
    return sum(1 for _ in page)


def clicks() -> DataFrame:
    rows = spark.readStream.schema("user INT, page STRING, at TIMESTAMP").option("maxFilesPerTrigger", 1)
    return rows.json(f"{folder}/clicks")


def keep(batch: DataFrame, number: int) -> None:
    batch.write.mode("overwrite").json(f"{folder}/totals/{number}")


(
    clicks()
    .withColumn("length", length("page"))
    .where("length > 6")
    .writeStream.queryName("long_pages")
    .format("json")
    .option("path", f"{folder}/out")
    .option("checkpointLocation", f"{folder}/checkpoints/long")
    .trigger(processingTime="1 second")
    .start()
)
(
    clicks()
    .groupBy("user")
    .count()
    .writeStream.queryName("totals")
    .outputMode("complete")
    .foreachBatch(keep)
    .option("checkpointLocation", f"{folder}/checkpoints/totals")
    .trigger(processingTime="2 seconds")
    .start()
)
spark.streams.awaitAnyTermination()
