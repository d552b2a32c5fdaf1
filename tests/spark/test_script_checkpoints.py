"""Which checkpoint a script's query has, and which file of it is broken, on real Spark without a cluster."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = """
import json, shutil, sys, time
from pathlib import Path
from types import SimpleNamespace
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from rheostat.engines.spark.driver import script_state
from rheostat.engines.spark.driver.script import Script
from rheostat.engines.spark.driver.script_query import ScriptQuery
from rheostat.engines.spark.spec import CheckpointRewrite
from rheostat.model.errors import UserError

folder = Path(sys.argv[1])
spark = (SparkSession.builder.master("local[1]").config("spark.ui.enabled", False)
    .config("spark.driver.host", "127.0.0.1").config("spark.sql.shuffle.partitions", 2).getOrCreate())
spark.sparkContext.setLogLevel("OFF")

def start(checkpoint=None):
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 20).load()
    writer = rows.groupBy("value").count().writeStream.outputMode("update")
    if checkpoint is None:
        return writer.format("memory").queryName("in_memory").start()
    return writer.format("noop").option("checkpointLocation", str(checkpoint)).start()

own = folder / "temporary-mine"
query, memory = start(own), start()
seen = {"own": ScriptQuery(query, "a").checkpoint, "memory": ScriptQuery(memory, "a").checkpoint}
while not query.recentProgress:
    time.sleep(0.1)
query.stop()
memory.stop()
newest = max(int(file.name) for file in (own / "offsets").iterdir() if file.name.isdigit())
lines = (own / "offsets" / str(newest)).read_text().splitlines()
script = Script(SimpleNamespace(spark=spark), None, None, None)
for name, left in {"version": lines[:1], "half": [lines[0], lines[1][:30]], "facts": lines[:2]}.items():
    copy = folder / name
    shutil.copytree(own, copy)
    (copy / "offsets" / f".{newest}.crc").unlink(missing_ok=True)
    (copy / "offsets" / str(newest)).write_text("\\n".join(left))
    by_rewrite = script_state.rewrite(spark, CheckpointRewrite(str(copy), 1)).error
    seen[name] = [f"file:{copy}/offsets/{newest}", by_rewrite]
    try:
        start(copy).awaitTermination(60)
    except StreamingQueryException as error:
        try:
            script.check_log(error)
        except UserError as named:
            seen[name].append(str(named))
print(json.dumps(seen))
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("checkpoints")
    command = [sys.executable, "-c", SCRIPT, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder, json.loads(done.stdout.splitlines()[-1])


def test_a_checkpoint_is_temporary_if_spark_says_so_whatever_its_name(
    seen: tuple[Path, dict[str, Any]],
) -> None:
    folder, saw = seen
    assert (saw["own"], saw["memory"]) == (f"file:{folder}/temporary-mine", None)


@pytest.mark.parametrize("cut", ["version", "half", "facts"])
def test_a_log_that_was_cut_short_is_named_by_a_rewrite_and_by_the_end_of_the_script(
    seen: tuple[Path, dict[str, Any]], cut: str
) -> None:
    file, by_rewrite, by_end = seen[1][cut]
    words = "is broken, perhaps cut short: restore it from a copy, or use a new checkpointLocation"
    assert by_end == f"{file} {words}"
    assert by_rewrite == by_end.removeprefix("file:")  # it was given a plain path
