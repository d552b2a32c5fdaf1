"""A plain PySpark script with a mistake. Argument: which."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
if sys.argv[1] != "nothing":
    spark.readStream.format("rate").load().select("there_is_no_such_column")
print("done")
