"""A query that never pauses ends after a whole batch all the same."""

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import json, sys, time
from pathlib import Path
from pyspark.sql import SparkSession
from rheostat.engines.spark.driver.boundary import stop_between_batches

folder = Path(sys.argv[1])
spark = (SparkSession.builder.master("local[2]").config("spark.ui.enabled", False)
    .config("spark.driver.host", "127.0.0.1").getOrCreate())
spark.sparkContext.setLogLevel("ERROR")
ends = []
for trigger in ("0 seconds", "1 second", "1 second"):
    rows = (spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 20)
        .option("numPartitions", 2).load())
    slow = rows.selectExpr("value", "reflect('java.lang.Thread', 'sleep', 110L)")  # 1.1 s: never a pause
    query = (slow.writeStream.format("noop").option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(processingTime=trigger).start())
    while not query.recentProgress or query.lastProgress["numInputRows"] == 0:
        time.sleep(0.1)
    stop_between_batches(query, 0.0 if trigger.startswith("0") else 1.0)
    logs = (folder / "checkpoint" / name for name in ("offsets", "commits"))
    ends.append([max(int(f.name) for f in log.iterdir() if f.name.isdigit()) for log in logs])
print(json.dumps(ends))
"""


def test_a_query_without_pauses_ends_with_its_last_batch_committed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    ends = json.loads(done.stdout.splitlines()[-1])
    assert [begun == committed for begun, committed in ends] == [True, True, True], ends
    assert ends[0][0] < ends[1][0] < ends[2][0]
