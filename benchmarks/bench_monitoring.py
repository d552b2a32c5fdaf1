"""What monitoring adds to a pipeline's time: the same stages with and without our observe() and listener.

Both in one JVM, in turns, so that the machine's moods hit both. Three operators of some 30 microseconds a row
each, as parsing a kilobyte of JSON costs, in batches of about three seconds. Counting rows (observe())
costs 0.15 microseconds per row and operator, listening next to nothing: where operators cost less
than 8 microseconds a row, monitoring weighs more than 2 % (2.4 % with operators of 9 in batches of 2.5 s).
"""

import statistics
import sys
import tempfile
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rheostat.engines.spark.driver.application import Application
from rheostat.engines.spark.driver.builder import Builder
from rheostat.engines.spark.driver.session import Session
from rheostat.engines.spark.spec import Spec

ROWS, BATCHES, SKIPPED, PAIRS, TASKS = 70_000, 7, 2, 6, 2
MOST = 1.02
HASHING = "aggregate(sequence(1, 1000), value, (hash, i) -> xxhash64(hash, i))"


def load(spark: SparkSession) -> DataFrame:
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS)
    return source.option("numPartitions", TASKS).load()


def work(column: str) -> Any:
    return lambda rows: rows.withColumn(column, F.expr(HASHING))


def seconds(writer: Any, folder: str) -> float:
    """Return the time in which the batches did their work, without the first ones."""
    query = writer.option("checkpointLocation", tempfile.mkdtemp(dir=folder)).start()
    while len(query.recentProgress) < BATCHES:
        query.awaitTermination(1)
    query.stop()
    return float(sum(item["durationMs"]["addBatch"] for item in query.recentProgress[SKIPPED:BATCHES])) / 1000


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="rheostat-bench-") as folder:
        spec = Spec("monitoring", "", "local[2]", folder, f"{folder}/socket", folder)
        session = Session(spec)
        session.spark.sparkContext.setLogLevel("OFF")  # stopping a query between batches is expected
        app = Application("monitoring")
        rows = app.source("in", load)
        for name in ("a", "b", "c"):
            rows = rows.operator(name, work(name))
        rows.sink("out", lambda out: out.writeStream.format("noop"))
        for name in ("in", "a", "b"):
            session.set_tasks(name, TASKS)
        builder = Builder(app, session.spark, None)
        bare = load(session.spark)
        for name in ("a", "b", "c"):
            bare = work(name)(bare.repartition(TASKS))
        result: dict[str, list[float]] = {"without": [], "with": []}
        print(f"  {PAIRS} pairs of runs, {BATCHES - SKIPPED} batches of {ROWS:,} rows each (seconds)")
        session.listen(False)
        for pair in range(PAIRS):
            for how in ("without", "with") if pair % 2 else ("with", "without"):
                session.listen(how == "with")
                with_it = how == "with"
                writer = builder.writer(builder.parts[0]) if with_it else bare.writeStream.format("noop")
                result[how].append(seconds(writer, folder))
                session.listen(False)
                session.drain()
            print(f"  without {result['without'][-1]:.2f}   with {result['with'][-1]:.2f}", flush=True)
        session.spark.stop()
    ratio = statistics.median(b / a for a, b in zip(result["without"][1:], result["with"][1:], strict=True))
    good = ratio <= MOST
    print(
        f"  monitoring x{ratio:.3f} (bound x{MOST:g}, without the first pair)  {'ok' if good else 'FAILED'}"
    )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
