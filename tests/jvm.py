"""JVMs that start quickly: the tests start some two hundred, and few live for a minute.

Compiling with C1 alone and an archive of Spark's loaded classes halve the time of the Spark tests. Both are
settings of the tests, not of Rheostat: what runs for hours is faster with C2. The parallel collector is there
for the measures: beside the serial one, which a JVM of one core takes by itself, the CPU time of tasks near a
collection doubles.
"""

import fcntl
import hashlib
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

from rheostat.services.java import java_command, spark_home

CACHE = Path(__file__).parents[1] / ".pytest_cache" / "jvm"
OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseParallelGC"
# On a local disk Hadoop starts fifty processes a batch to write its checkpoint: `readlink`, and `chmod`. This
# manager of checkpoint files does without the first, which are two thirds.
SETTINGS = {
    "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution.streaming.checkpointing"
    ".FileSystemBasedCheckpointFileManager",
}
# Loads what a Master, a Worker and a driver load, and then in the same JVM what an executor does.
TRAINING = """
import shutil, sys
from pyspark.sql import SparkSession
for master in ("local-cluster[1,2,1024]", "local[2]"):
    spark = (SparkSession.builder.master(master).config("spark.ui.enabled", False)
        .config("spark.executor.memory", "512m")
        .config("spark.sql.streaming.stateStore.providerClass",
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
        .config("spark.sql.shuffle.partitions", 2).getOrCreate())
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 20).load().repartition(2)
    counts = rows.groupBy("value").count().writeStream.outputMode("update")
    query = counts.foreachBatch(lambda frame, batch: frame.collect()).start()
    while len(query.recentProgress) < 3:
        query.awaitTermination(1)
    query.stop()
    name = spark.sparkContext.applicationId
    spark.stop()
    shutil.rmtree(f"{sys.argv[1]}/work/{name}", ignore_errors=True)  # of the Worker
"""


@cache
def quicken() -> None:
    """Let every JVM that is started from now on start quickly; the first time this takes half a minute."""
    CACHE.mkdir(parents=True, exist_ok=True)
    archive = CACHE / f"classes-{_fingerprint()}.jsa"
    with (CACHE / "lock").open("w") as lock:  # the tests run in several processes; one of them does it
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not archive.exists():
            print("Archiving Spark's classes for the tests (once, half a minute)", flush=True)
            _train(archive)
    os.environ["JAVA_TOOL_OPTIONS"] = f"{OPTIONS} -XX:SharedArchiveFile={archive}"


def _fingerprint() -> str:
    """Names what an archive is made of: the Java and the Spark, which alone can use it, and the training."""
    version = subprocess.run([java_command(), "-version"], capture_output=True, text=True, check=True).stderr
    jars = sorted((spark_home() / "jars").iterdir())
    told = [TRAINING, version, *(f"{jar} {jar.stat().st_mtime_ns}" for jar in jars)]
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:16]


def _train(archive: Path) -> None:
    new = archive.with_suffix(f".{os.getpid()}")
    options = f"-XX:ArchiveClassesAtExit={new}"  # of the driver, not of what it starts
    arguments = f"--driver-java-options '{options}' pyspark-shell"
    done = subprocess.run(
        [sys.executable, "-c", TRAINING, str(spark_home())],
        env={**os.environ, "PYSPARK_SUBMIT_ARGS": arguments, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and new.exists(), f"no archive was written: {done.stderr[-2000:]}"
    new.replace(archive)


if __name__ == "__main__":  # beside something that needs one core
    quicken()
