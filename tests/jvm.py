"""JVMs that start quickly: the tests start some two hundred, and few live for a minute.

Compiling with C1 alone and an archive of Spark's loaded classes halve the time of the Spark tests. Both are
settings of the tests, not of Rheostat: what runs for hours is faster with C2.
"""

import fcntl
import hashlib
import os
import subprocess
import sys
from pathlib import Path

from rheostat.infrastructure.java import java_command, spark_home

CACHE = Path(__file__).parents[1] / ".pytest_cache" / "jvm"
OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# Loads what a driver and an executor load: planning, code generation, a shuffle, state, Python workers.
TRAINING = """
from pyspark.sql import SparkSession
spark = (SparkSession.builder.master("local[2]").config("spark.ui.enabled", False)
    .config("spark.sql.shuffle.partitions", 2).getOrCreate())
rows = spark.readStream.format("rate").load().select("value").mapInArrow(iter, "value long")
counts = rows.groupBy("value").count().writeStream.format("noop").outputMode("update")
query = counts.trigger(processingTime="0 seconds").start()
while len(query.recentProgress) < 3:
    query.awaitTermination(1)
query.stop()
spark.stop()
"""


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
    """Names the Java and the Spark that an archive is for: no other can use it."""
    version = subprocess.run([java_command(), "-version"], capture_output=True, text=True, check=True).stderr
    jars = sorted((spark_home() / "jars").iterdir())
    told = [version, *(f"{jar} {jar.stat().st_mtime_ns}" for jar in jars)]
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:16]


def _train(archive: Path) -> None:
    new = archive.with_suffix(f".{os.getpid()}")
    options = f"-XX:+UseSerialGC -XX:ArchiveClassesAtExit={new}"
    done = subprocess.run(
        [sys.executable, "-c", TRAINING],
        env={**os.environ, "JAVA_TOOL_OPTIONS": options},
        capture_output=True,
        text=True,
        check=False,
    )
    assert new.exists(), f"no archive was written: {done.stderr[-2000:]}"
    new.replace(archive)
