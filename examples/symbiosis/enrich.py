"""An operator that waits for a remote service, then four that compute a little. Argument: a load curve.

In Real-Time Mode, where nodes have more slots than cores, ELYSIUM scales them apart: `lookup` gets instances
as the load asks for them, and nodes come as the CPU of all operators does (docs/policies/elysium.md).
"""

import sys

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from rheostat import Application
from rheostat.apps.live_stream import LiveStream

LOOKUP_SECONDS = 0.0195  # for which a row waits
ROUNDS = 90_000  # of a hash, about 2 ms

PARK = f"reflect('java.util.concurrent.locks.LockSupport', 'parkNanos', {LOOKUP_SECONDS * 1e9:.0f}L)"
HASH = f"aggregate(sequence(0, {ROUNDS}), value, (hash, i) -> xxhash64(hash, i))"


def lookup(rows: DataFrame) -> DataFrame:
    return rows.withColumn("answer", F.expr(f"coalesce(length({PARK}), value)"))


def compute(rows: DataFrame) -> DataFrame:
    return rows.withColumn("value", F.expr(HASH))  # the next operator needs it, so Spark computes it


stream = LiveStream(sys.argv[1] if len(sys.argv) > 1 else "stair:low=20:high=60:steps=2:duration=5m")
app = Application("enrich")
rows = app.source("in", stream.load, arrived=stream.arrived).operator("lookup", lookup)
for name in ("clean", "score", "sign", "pack"):
    rows = rows.operator(name, compute)
rows.sink("nowhere", lambda df: df.writeStream.format("noop").outputMode("update"))

if __name__ == "__main__":
    app.run()
