"""NEXMark's query 5 as a data engineer writes it: which auctions get most bids, in a sliding window.

Arguments: a folder for results and checkpoint, bids per second. Nothing here knows of Rheostat.
"""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

folder, rate = sys.argv[1], int(sys.argv[2])
spark = SparkSession.builder.appName("hot-items").getOrCreate()
rows = spark.readStream.format("rate").option("rowsPerSecond", rate).option("numPartitions", 2).load()
bids = rows.select(
    F.col("timestamp").alias("at"),
    (F.xxhash64("value") % 1000).alias("auction"),
    (F.rand() * 100).alias("price"),
)
hot = (
    bids.withWatermark("at", "4 seconds")
    .groupBy(F.window("at", "10 seconds", "2 seconds"), "auction")
    .agg(F.count("*").alias("bids"), F.max("price").alias("most"))
)
hot.writeStream.queryName("hot_items").format("parquet").outputMode("append").option(
    "path", f"{folder}/hot"
).option("checkpointLocation", f"{folder}/checkpoint").trigger(processingTime="3 seconds").start()
spark.streams.awaitAnyTermination()
