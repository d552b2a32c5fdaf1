"""Runs scripts under plain Spark, one after the other, each until it has read all of its input.

Reads from standard input a list of [script, its number of queries, its arguments...], and jars for Spark.
"""

import json
import runpy
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery


def run(spark: SparkSession, script: str, queries: int, *arguments: str) -> None:
    sys.argv = [script, *arguments]
    active: list[StreamingQuery] = []
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(runpy.run_path, script, run_name="__main__")
        while not running.done() and len(active) < queries:
            time.sleep(0.05)
            active = spark.streams.active
        for query in active:
            query.processAllAvailable()
        for query in active:
            query.stop()
        running.result()
    spark.streams.resetTerminated()


def main() -> None:
    asked = json.load(sys.stdin)
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", False)
    session = builder.config("spark.sql.shuffle.partitions", 2).config("spark.jars", asked["jars"])
    spark = session.getOrCreate()
    for script, queries, *arguments in asked["scripts"]:
        run(spark, script, queries, *arguments)
    spark.stop()


if __name__ == "__main__":
    main()
