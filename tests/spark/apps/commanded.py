"""A chain whose load and costs change while it runs. Arguments: the file that says them, operators that burn.

Rows carry what they cost: how long `wait` holds them, and the rounds of a hash in each operator that burns.
"""

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from rheostat import Application
from rheostat.apps.live_stream import FEED_SECONDS, _memory_source

ORDERS, BURNING = Path(sys.argv[1]), int(sys.argv[2])
PARK = "reflect('java.util.concurrent.locks.LockSupport', 'parkNanos', wait)"


class Offered:
    """Rows at the rate, rising or not, and of the cost, that the file says now."""

    def __init__(self, orders: Path) -> None:
        self._orders, self._source, self._jvm = orders, None, None
        self._sent = 0

    def load(self, spark: SparkSession) -> DataFrame:
        """Both columns of a row; the first call starts the feed."""
        if self._source is None:
            self._source, context = _memory_source(spark, 1), _any(spark.sparkContext)
            self._jvm = context._jvm
            threading.Thread(target=self._feed, name="feed", daemon=True).start()
        parts = F.split(F.col("value"), ",")
        rows = DataFrame(_any(self._source).toDF(), spark)
        return rows.select(parts[0].cast("bigint").alias("wait"), parts[1].cast("int").alias("rounds"))

    def arrived(self) -> float:
        """Return the rows offered so far."""
        return float(self._sent)

    def _feed(self) -> None:
        order, due, began, last = "", 0.0, 0.0, time.monotonic()
        while True:
            text, now = self._orders.read_text(), time.monotonic()
            if text != order:
                order, began = text, now
            said = json.loads(order)
            due += (said["rate"] + said["rise"] * (now - began)) * (now - last)
            last = now
            self._give(f"{said['wait_nanoseconds']},{said['rounds']}", int(due) - self._sent)
            time.sleep(FEED_SECONDS)

    def _give(self, row: str, count: int) -> None:
        if not count:
            return
        jvm = _any(self._jvm)
        rows = jvm.java.util.Collections.nCopies(count, row)
        _any(self._source).addData(jvm.scala.jdk.javaapi.CollectionConverters.asScala(rows).toSeq())
        self._sent += count


def _any(thing: object) -> Any:
    return thing


def burn(column: str) -> Column:
    return F.expr(f"aggregate(sequence(0, rounds), {column}, (hash, i) -> xxhash64(hash, i))")


offered = Offered(ORDERS)
app = Application("commanded", trigger_seconds=3)
rows = app.source("in", offered.load, arrived=offered.arrived)
# All columns reach the sink: Spark does not compute one that nobody reads.
rows = rows.operator(
    "wait", lambda df: df.withColumn("hash", F.expr(f"coalesce(length({PARK}), wait)")), max_parallelism=8
)
for number in range(BURNING):
    rows = rows.operator(f"burn{number}", lambda df: df.withColumn("hash", burn("hash")), max_parallelism=8)
rows.sink("nowhere", lambda df: df.writeStream.format("noop").outputMode("update"))

if __name__ == "__main__":
    app.run()
