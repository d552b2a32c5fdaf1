"""Streams that follow a load curve, for demos, tests and benchmarks. Row n is the same in every run."""

import math
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rheostat.engines.spark import rate_source
from rheostat.workloads import parse_curve, sample

TICK_SECONDS = 1.0  # the rate source counts in whole seconds
FEED_SECONDS = 0.05


def totals(curve: str, seed: int, tick_seconds: float = TICK_SECONDS) -> list[int]:
    """Return the number of rows due after 0, 1, 2, ... ticks."""
    rates = sample(parse_curve(curve), tick_seconds, seed)
    return [0, *np.floor(np.cumsum(rates) * tick_seconds + 1e-9).astype(int).tolist()]


def stream(spark: SparkSession, curve: str, seed: int = 0, partitions: int = 1) -> DataFrame:
    """Rows `value` (0, 1, 2, ...) and `timestamp` at a curve's rate, for micro-batches.

    Spark's rate source gives a row per tick; each becomes the rows that the curve brings in that tick. All of
    it is Spark's own code, so an executor needs no Python to read it. With more partitions a second has as
    many ticks, and so many tasks read.
    """
    counts = totals(curve, seed, TICK_SECONDS / partitions)
    ticks = (
        spark.readStream.format("rate")
        .option("rowsPerSecond", round(partitions / TICK_SECONDS))
        .option("numPartitions", partitions)
        .load()
        .where(F.col("value") < len(counts) - 1)
    )
    totals_array = f"cast(split('{','.join(map(str, counts))}', ',') as array<bigint>)"
    first, after = (
        f"element_at({totals_array}, cast(value + 1 as int))",
        f"element_at({totals_array}, cast(value + 2 as int))",
    )
    rows = f"case when {after} > {first} then sequence({first}, {after} - 1) else array() end"
    return ticks.select("timestamp", F.explode(F.expr(rows)).alias("value"))


def arrivals(curve: str, seed: int, partitions: int, checkpoint: Path) -> Callable[[], float]:
    """Return a function that counts the rows that `stream` has offered so far; NaN before it started."""
    tick = TICK_SECONDS / partitions
    counts, start = np.array(totals(curve, seed, tick), dtype=np.float64), list[float]()
    at = np.arange(len(counts)) * tick

    def arrived() -> float:
        if not start:
            if (began_at := rate_source.began(checkpoint)) is None:
                return math.nan
            start.append(began_at)
        return float(np.interp(time.time() - start[0], at, counts))

    return arrived


def flood(spark: SparkSession, rows: int, partitions: int = 1) -> DataFrame:
    """Return rows `value` and `timestamp`, a fixed number per batch: the output rate is the capacity."""
    reader = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", rows)
    return reader.option("numPartitions", partitions).load().select("value", "timestamp")


class LiveStream:
    """Rows `value` at a curve's rate, for Real-Time Mode: fed by a thread into Spark's in-memory source.

    The source is Spark's own for tests: one call to the driver per row, and nothing is ever freed, so it is
    good for a thousand rows a second and some minutes. A restarted query reads the same source.
    """

    def __init__(self, curve: str, seed: int = 0, partitions: int = 1) -> None:
        self._counts, self._partitions = totals(curve, seed), partitions
        self._source: Any = None
        self._jvm: Any = None
        self.sent = 0

    def load(self, spark: SparkSession) -> DataFrame:
        """The stream; the first call starts the feed."""
        if self._source is None:
            self._source = _memory_source(spark, self._partitions)
            context: Any = spark.sparkContext
            self._jvm = context._jvm
            threading.Thread(target=self._feed, name="feed", daemon=True).start()
        return DataFrame(self._source.toDF(), spark).select(F.col("value").cast("bigint").alias("value"))

    def arrived(self) -> float:
        """Return the rows offered so far."""
        return float(self.sent)

    def _feed(self) -> None:
        """Give the rows to the source when they are due."""
        counts, began = self._counts, time.monotonic()
        while True:
            tick, fraction = divmod((time.monotonic() - began) / TICK_SECONDS, 1.0)
            first, after = (counts[min(int(tick) + more, len(counts) - 1)] for more in (0, 1))
            due = first + int((after - first) * fraction)
            if due > self.sent:
                rows = self._jvm.java.util.ArrayList()
                for value in range(self.sent, due):
                    rows.add(str(value))
                self._source.addData(self._jvm.scala.jdk.javaapi.CollectionConverters.asScala(rows).toSeq())
                self.sent = due
            if tick >= len(counts):
                return
            time.sleep(FEED_SECONDS)


def _memory_source(spark: SparkSession, partitions: int) -> Any:
    session: Any = spark
    context: Any = spark.sparkContext
    jvm = context._jvm
    clock = getattr(jvm.org.apache.spark.sql.execution.datasources.v2, "LowLatencyClock$")
    return jvm.org.apache.spark.sql.execution.streaming.sources.LowLatencyMemoryStream(
        0,
        session._jsparkSession,
        partitions,
        getattr(clock, "MODULE$").getClock(),
        jvm.org.apache.spark.sql.Encoders.STRING(),
    )
