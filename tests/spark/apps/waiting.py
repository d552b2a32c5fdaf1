"""Operators that hold their rows in different ways. Arguments: rows per second, how long each waits."""

import sys

from pyspark.sql import functions as F

from rheostat import Application
from rheostat.apps.live_stream import LiveStream
from rheostat.apps.modelled import ROUND_SECONDS, _spent

RATE, SECONDS = int(sys.argv[1]), float(sys.argv[2])
LIVE = LiveStream(f"constant:rate={RATE}:duration=10m")
BURNING = _spent(100_000 * ROUND_SECONDS, wait=0.0)

app = Application("waiting", trigger_seconds=2)
rows = app.source("in", LIVE.load, arrived=LIVE.arrived)
# All columns reach the sink: Spark does not compute one that nobody reads.
rows = rows.operator("wait", lambda df: df.withColumn("waited", _spent(SECONDS, wait=1.0)))
rows = rows.operator("burn", lambda df: df.withColumn("hash", BURNING).where(F.col("hash") == 0))
rows.operator("idle", lambda df: df).sink(
    "out", lambda df: df.writeStream.format("noop").outputMode("update")
)

if __name__ == "__main__":
    app.run()
