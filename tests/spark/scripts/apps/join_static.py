"""Clicks with what is known of their pages. Argument: a folder with clicks and a table of pages."""

import sys

from pyspark.sql import SparkSession

folder = sys.argv[1]
spark = SparkSession.builder.appName("join-static").getOrCreate()
pages = spark.read.option("header", True).csv(f"{folder}/pages.csv")
clicks = (
    spark.readStream.schema("user INT, page STRING, at TIMESTAMP")
    .option("maxFilesPerTrigger", 2)
    .json(f"{folder}/clicks")
)
known = clicks.join(pages, "page", "left_outer").select("user", "page", "title", "at")
query = (
    known.writeStream.queryName("known pages")
    .format("json")
    .option("path", f"{folder}/out")
    .option("checkpointLocation", f"{folder}/checkpoint")
    .trigger(processingTime="1 second")
    .start()
)
query.awaitTermination()
