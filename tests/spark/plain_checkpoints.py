"""Makes checkpoints with plain Spark, in many state partitions, and tries to rewrite damaged ones.

`python -m tests.spark.plain_checkpoints FOLDER` leaves in FOLDER what a script made with each of Spark's
state providers; the one with RocksDB was stopped in the middle of a batch. `seen.json` says what it saw.
"""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from rheostat.engines.spark.driver import script_state
from rheostat.engines.spark.spec import SHUFFLE_PARTITIONS, CheckpointRewrite
from tests.spark.apps.plain_state import start

ROOT = Path(__file__).parents[2]
PARTITIONS, RATE = 40, 50
SEEN = "seen.json"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
OFFSET_LOG = "spark.sql.streaming.offsetLog.formatVersion"  # SPARK-59662 is about its second version


def make(folder: Path) -> dict[str, Any]:
    """Do it in a process of its own, as a JVM runs one plain Spark at a time; return what was seen."""
    command = [sys.executable, "-m", __name__, str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    seen: dict[str, Any] = json.loads((folder / SEEN).read_text())
    return seen


def newest(checkpoint: Path, log: str) -> int:
    """The newest batch in one of the logs, -1 without any."""
    folder = checkpoint / log
    names = [file.name for file in folder.iterdir()] if folder.exists() else []
    return max((int(name) for name in names if name.isdigit()), default=-1)


def partitions(checkpoint: Path, batch: int) -> int | None:
    """The number of state partitions that a batch was begun with; None: its log does not say."""
    count = facts(checkpoint, batch)["conf"].get(SHUFFLE_PARTITIONS)
    return None if count is None else int(count)


def is_being_rewritten(checkpoint: Path, count: int) -> bool:
    """Whether Spark writes the state into so many partitions, and has not committed that."""
    batch = newest(checkpoint, "offsets")
    return batch > newest(checkpoint, "commits") and partitions(checkpoint, batch) == count


def facts(checkpoint: Path, batch: int) -> dict[str, Any]:
    """The second line of a batch's entry in the log of offsets."""
    lines = (checkpoint / "offsets" / str(batch)).read_text().splitlines()
    result: dict[str, Any] = json.loads(lines[1])
    return result


def main(folder: Path) -> None:
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config(SHUFFLE_PARTITIONS, PARTITIONS).getOrCreate()
    default = start(spark, folder / "default", RATE)
    spark.conf.set(PROVIDER, ROCKSDB)
    spark.conf.set(OFFSET_LOG, "2")
    stop_within_a_batch(spark, folder / "rocksdb")
    default.stop()
    cut_short(folder)
    seen = {"unfinished": rewrite_unfinished(spark, folder), "bare": rewrite_bare(spark, folder)}
    (folder / SEEN).write_text(json.dumps(seen))  # Spark and its libraries write to the standard output
    spark.stop()


def stop_within_a_batch(spark: SparkSession, folder: Path) -> None:
    """Run the script until a batch after the second is begun and not committed."""
    checkpoint, query = folder / "checkpoint", start(spark, folder, RATE)
    while not newest(checkpoint, "offsets") > newest(checkpoint, "commits") >= 2:
        if not query.isActive:
            query = start(spark, folder, RATE)
        time.sleep(0.01)
        if newest(checkpoint, "offsets") > newest(checkpoint, "commits") >= 2:
            end(query)


def end(query: StreamingQuery) -> None:
    query.stop()
    query.awaitTermination()


def rewrite_unfinished(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """A rewrite while the last batch is not finished: refused, and the checkpoint stays as it is."""
    copy = copied(folder, "unfinished")
    before = newest(copy, "offsets"), newest(copy, "commits")
    done = script_state.rewrite(spark, CheckpointRewrite(str(copy), 4))
    after = newest(copy, "offsets"), newest(copy, "commits")
    return {"error": done.error, "before": before, "after": after}


def rewrite_bare(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """The same where the log of the last batch says nothing of partitions; the session has another number."""
    copy = copied(folder, "bare")
    batch = newest(copy, "offsets")
    log, known = copy / "offsets" / str(batch), facts(copy, batch)
    version, _, *offsets = log.read_text().splitlines()
    del known["conf"][SHUFFLE_PARTITIONS]
    log.write_text("\n".join((version, json.dumps(known), *offsets)))
    (log.parent / f".{batch}.crc").unlink(missing_ok=True)
    done = script_state.rewrite(spark, CheckpointRewrite(str(copy), 4))
    return {"error": done.error, "partitions": partitions(copy, batch), "starts": goes_on(spark, copy)}


def cut_short(folder: Path) -> None:
    """A rewrite that was killed: a batch with the same offsets and other partitions is begun only."""
    offsets = copied(folder, "cut") / "offsets"
    committed = newest(offsets.parent, "commits")
    begun = offsets / str(committed + 1)
    same = (offsets / str(committed)).read_text()
    begun.write_text(same.replace(f'"{SHUFFLE_PARTITIONS}":"{PARTITIONS}"', f'"{SHUFFLE_PARTITIONS}":"2"'))
    (offsets / f".{begun.name}.crc").unlink(missing_ok=True)
    assert partitions(offsets.parent, committed + 1) == 2


def copied(folder: Path, name: str) -> Path:
    shutil.copytree(folder / "rocksdb", folder / name)
    return folder / name / "checkpoint"


def goes_on(spark: SparkSession, checkpoint: Path) -> int | None:
    """Start the script on it until another batch is committed; how many partitions that has."""
    spark.conf.set(SHUFFLE_PARTITIONS, "2")  # as Rheostat might have chosen for a new checkpoint
    query, wanted = start(spark, checkpoint.parent, RATE), newest(checkpoint, "offsets") + 1
    while query.isActive and newest(checkpoint, "commits") < wanted:
        time.sleep(0.05)
    query.stop()
    spark.conf.set(SHUFFLE_PARTITIONS, str(PARTITIONS))
    return partitions(checkpoint, wanted)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
