"""Rows that fail to link while they are rehearsed, as a class does whose initialisation goes wrong there."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rheostat import Application

BROKEN = """if(java_method('java.lang.Thread', 'currentThread') like '%rehearsal%',
               java_method('java.lang.System', 'loadLibrary', 'missing'), '')"""


def load(spark: SparkSession) -> DataFrame:
    return spark.readStream.format("rate").option("rowsPerSecond", 20).load()


app = Application("unrehearsable", trigger_seconds=1)
rows = app.source("in", load).operator("work", lambda rows: rows.withColumn("never", F.expr(BROKEN)))
rows.sink("out", lambda rows: rows.writeStream.format("noop"))
app.run()
