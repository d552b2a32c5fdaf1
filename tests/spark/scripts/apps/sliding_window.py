"""How often each page was seen, in windows that overlap. Argument: a folder with the clicks."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

folder = sys.argv[1]
spark = SparkSession.builder.appName("sliding-window").getOrCreate()
clicks = (
    spark.readStream.schema("user INT, page STRING, at TIMESTAMP")
    .option("maxFilesPerTrigger", 1)
    .json(f"{folder}/clicks")
)
views = (
    clicks.withWatermark("at", "4 seconds")
    .groupBy(F.window("at", "10 seconds", "2 seconds"), "page")
    .agg(F.count("*").alias("views"), F.max("user").alias("last_user"))
)
query = (
    views.select("window.start", "page", "views", "last_user")
    .writeStream.format("json")
    .option("path", f"{folder}/out")
    .option("checkpointLocation", f"{folder}/checkpoint")
    .trigger(processingTime="1 second")
    .start()
)
query.awaitTermination()
