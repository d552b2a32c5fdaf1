"""Each user's first click on a page, all that there are until now. Argument: a folder with the clicks."""

import sys

from pyspark.sql import SparkSession

folder = sys.argv[1]
spark = SparkSession.builder.appName("drop-duplicates").getOrCreate()
clicks = (
    spark.readStream.schema("user INT, page STRING, at TIMESTAMP")
    .option("maxFilesPerTrigger", 1)
    .json(f"{folder}/clicks")
)
query = (
    clicks.dropDuplicates(["user", "page"])
    .select("user", "page")
    .writeStream.format("parquet")
    .option("path", f"{folder}/out")
    .option("checkpointLocation", f"{folder}/checkpoint")
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()
