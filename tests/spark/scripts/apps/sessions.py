"""How long users stay. Argument: a folder with the clicks."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

folder = sys.argv[1]
spark = SparkSession.builder.appName("sessions").getOrCreate()
clicks = (
    spark.readStream.schema("user INT, page STRING, at TIMESTAMP")
    .option("maxFilesPerTrigger", 1)
    .json(f"{folder}/clicks")
)
sessions = (
    clicks.withWatermark("at", "4 seconds")
    .groupBy(F.session_window("at", "3 seconds"), "user")
    .agg(F.count("*").alias("clicks"))
)
(
    sessions.select("session_window.start", "session_window.end", "user", "clicks")
    .writeStream.queryName("sessions")
    .format("parquet")
    .option("path", f"{folder}/out")
    .option("checkpointLocation", f"{folder}/checkpoint")
    .trigger(processingTime="1 second")
    .start()
    .awaitTermination()
)
