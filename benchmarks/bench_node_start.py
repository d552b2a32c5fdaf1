"""A new node under a running query: usable slots within 15 s, no batch above 3x the median before it."""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from rheostat.engines.spark.driver.executor_plugins import executor_settings
from rheostat.engines.spark.driver.session import spread_state
from rheostat.engines.spark.driver.warm_executors import warmed
from rheostat.model.configuration import NodeKind
from rheostat.services.local_cluster import LocalCluster

USABLE_SECONDS, SLOWEST_RATIO = 15.0, 3.0
REPETITIONS, BATCHES, SETTLING = 3, 10, 12
KIND = NodeKind("small", cores=0.5, slots=2, executors=1, memory_mb=1024)
ROWS, HASHES, TASKS = 2000, 60, 4
SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.executor.cores": "2",
    "spark.executor.memory": "640m",
    "spark.dynamicAllocation.enabled": "false",
    "spark.locality.wait": "1s",  # as the engine sets it
    "spark.sql.shuffle.partitions": str(TASKS),
    "spark.sql.adaptive.streaming.stateless.enabled": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state"
    ".RocksDBStateStoreProvider",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def until(condition: Callable[[], bool], seconds: float = 180.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"not within {seconds:g} s")
        time.sleep(0.02)


class Run:
    """Run an application on one node; add a second node and remove it again."""

    def __init__(self, cluster: LocalCluster, warm: bool) -> None:
        self.cluster, self.warm = cluster, warm
        first = cluster.add(KIND)
        cluster.wait(first.name)
        builder = SparkSession.builder.master(cluster.url)
        for key, value in {**SETTINGS, **(executor_settings(warn=print) if warm else {})}.items():
            builder = builder.config(key, value)
        self.spark = builder.getOrCreate()
        context: Any = self.spark.sparkContext
        context.setLogLevel("ERROR")
        self.jvm, self.scala = context._jvm, context._jsc.sc()
        spread_state(self.spark)
        self.request(1)
        until(lambda: len(self.executors()) == 1)
        self.query = self.start()
        until(lambda: self.last() >= 2)
        cluster.limit(first.name)
        until(lambda: self.last() >= SETTLING)

    def start(self) -> StreamingQuery:
        source = self.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS)
        hashed = F.col("value").cast("string")
        for _ in range(HASHES):
            hashed = F.sha2(hashed, 256)
        rows = source.option("numPartitions", 2).load().repartition(TASKS)
        counts = rows.withColumn("key", F.substring(hashed, 1, 2)).groupBy("key").count()
        writer = counts.writeStream.format("noop").outputMode("update").trigger(processingTime="2 seconds")
        return writer.option("checkpointLocation", str(self.cluster.folder / "checkpoint")).start()

    def request(self, total: int) -> None:
        self.scala.requestTotalExecutors(total, 0, self.jvm.PythonUtils.toScalaMap({}))

    def executors(self) -> set[str]:
        result, ids = set(), self.scala.getExecutorIds().iterator()
        while ids.hasNext():
            result.add(str(ids.next()))
        return result

    def usable(self) -> set[str]:
        return self.executors() & warmed(self.jvm) if self.warm else self.executors()

    def seconds(self) -> dict[int, float]:
        return {
            item["batchId"]: item["durationMs"]["triggerExecution"] / 1000
            for item in self.query.recentProgress
        }

    def last(self) -> int:
        if self.query.exception():
            raise RuntimeError(self.query.exception())
        return max(self.seconds(), default=-1)

    def scale_out(self) -> dict[str, float]:
        begin = self.last()
        until(lambda: self.last() >= begin + BATCHES)
        decided, ordered = self.last(), time.monotonic()
        self.request(2)
        node = self.cluster.add(KIND)
        self.cluster.wait(node.name)
        registered = time.monotonic()
        until(lambda: len(self.usable()) == 2)
        self.cluster.limit(node.name)
        usable, used = time.monotonic(), self.last()
        until(lambda: self.last() >= used + BATCHES)
        batches = self.seconds()
        before = statistics.median(batches[i] for i in range(decided - BATCHES + 1, decided + 1))
        slowest = max(batches[i] for i in batches if i > decided)  # including those while the node boots
        self.request(1)
        self.cluster.remove(node.name)
        until(lambda: len(self.executors()) == 1)
        return {
            "worker": registered - ordered,
            "usable": usable - ordered,
            "before": before,
            "slowest": slowest,
            "ratio": slowest / before,
            "settled": statistics.median(batches[i] for i in batches if i > used + 2) / before,
        }


def item(warm: bool, out: Path) -> None:
    with LocalCluster(warn=print) as cluster:
        run = Run(cluster, warm)
        out.write_text(json.dumps([run.scale_out() for _ in range(REPETITIONS)]))
        run.query.stop()
        run.spark.stop()


def measure(kind: str) -> list[dict[str, float]]:
    """Run in a separate process: the driver's settings apply to a whole JVM."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "result.json"
        subprocess.run(
            [sys.executable, __file__, "--one", kind, str(out)],
            check=True,
            timeout=900,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        result: list[dict[str, float]] = json.loads(out.read_text())
    return result


def main() -> int:
    print("one node of 0.5 core and 2 slots more, under a query of three stages (seconds)")
    print("  executors  worker  usable  median before  slowest after  ratio  settled at")
    result: dict[str, list[dict[str, float]]] = {}
    for kind in ("cold", "warm"):
        result[kind] = measure(kind)
        for row in result[kind]:
            print(
                f"  {kind:9}  {row['worker']:6.1f}  {row['usable']:6.1f}  {row['before']:13.2f}  "
                f"{row['slowest']:13.2f}  {row['ratio']:5.1f}  x{row['settled']:.2f}",
                flush=True,
            )
    usable, ratio = (statistics.median(row[key] for row in result["warm"]) for key in ("usable", "ratio"))
    good = usable <= USABLE_SECONDS and ratio <= SLOWEST_RATIO
    print(
        f"  warm, median: usable after {usable:.1f} s (bound {USABLE_SECONDS:g}), slowest batch x{ratio:.1f} "
        f"(bound x{SLOWEST_RATIO:g})  {'ok' if good else 'FAILED'}"
    )
    return 0 if good else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        item(sys.argv[2] == "warm", Path(sys.argv[3]))
        sys.exit(0)
    sys.exit(main())
