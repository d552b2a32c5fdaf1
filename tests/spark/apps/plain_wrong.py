"""A plain PySpark script with a mistake. Argument: which."""

import sys
import time

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
if sys.argv[1] == "slow":  # Spark does not end
    SparkSession.stop = lambda self: time.sleep(600)  # type: ignore[method-assign]
if sys.argv[1] != "nothing":
    spark.readStream.format("rate").load().select("there_is_no_such_column")
print("done")
