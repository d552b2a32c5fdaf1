"""Rows per second and core of each application: its operators on one core, without the stream around them.

A row is a sentence, a message, a packet or, for comd, an iteration of 32,000 atoms; making it is counted too.
Streaming adds what a batch costs.
"""

import time
from collections.abc import Callable, Mapping
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.apps.frames import last_frames

from rheostat.apps.comd import app as comd
from rheostat.apps.ddos import app as ddos
from rheostat.apps.inputs import Input
from rheostat.apps.modelled import modelled
from rheostat.apps.sentiment import app as sentiment
from rheostat.apps.topk import app as topk
from rheostat.apps.wordcount import app as wordcount
from rheostat.engines.spark.driver.application import Application
from rheostat.model.topology_file import find_topology

APPS: Mapping[
    str, tuple[Callable[[Input], Application], int]
] = {  # with a number of rows that takes some seconds
    "wordcount": (wordcount.build, 1_000_000),
    "topk": (topk.build, 500_000),
    "sentiment": (sentiment.build, 500_000),
    "ddos": (ddos.build, 500_000),
    "comd": (comd.build, 60),
    **{
        name: (partial(modelled, find_topology(name)), 1_000)
        for name in ("linear", "star", "diamond", "topology10")
    },
}


class Range(Input):
    """Provides all numbers at once instead of over time."""

    rows = 0

    def numbers(self, spark: SparkSession) -> DataFrame:
        seconds = F.timestamp_seconds(F.col("id") / 1000)
        return spark.range(self.rows).select(F.col("id").alias("value"), seconds.alias("timestamp"))


def run(spark: SparkSession, app: Application) -> float:
    """Run its queries one after the other, as batches; return the seconds."""
    began = time.monotonic()
    for rows in last_frames(app, spark).values():
        rows.write.format("noop").mode("overwrite").save()
    seconds = time.monotonic() - began
    spark.catalog.clearCache()
    return seconds


def main() -> None:
    """Warm up, then measure each."""
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "1").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    print("  application    rows/s per core")
    for name, (build, rows) in APPS.items():
        Range.rows = rows
        run(spark, build(Range()))
        seconds = run(spark, build(Range()))
        print(f"  {name:12} {rows / seconds:16,.0f}", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
