"""New executors rehearse the last batch before they take tasks; when they cannot, they start all the same."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from rheostat.engines.spark.driver.executor_plugins import executor_settings
from rheostat.engines.spark.driver.warm_executors import LIMIT
from rheostat.model.decision import Status
from rheostat.services.local_cluster import LocalCluster

from .controllers import eventually
from .support import application, names, observe_batches, plan

APP = """
import json, os, time
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from rheostat.services.local_cluster import LocalCluster
from rheostat.engines.spark.driver.boundary import stop_between_batches
from rheostat.engines.spark.driver.executor_plugins import executor_settings
from rheostat.engines.spark.driver.warm_executors import BUDGET, LIMIT, warmed
from rheostat.model.configuration import NodeKind

KIND = NodeKind(slots=2, memory_mb=1024)

def until(condition):
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end, "not in time"
        time.sleep(0.05)

def words(folder):
    return "".join(log.read_text() for log in folder.glob("*/*/stderr"))

def rehearsed_in(folder):  # walk skips folders that go meanwhile
    return any("rehearsal" in names for _, names, _ in os.walk(folder))

def start(spark, provider, name):
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 100).load().repartition(4)
    rows = rows.withColumn("key", F.expr("value % 10")).withWatermark("timestamp", "0 seconds")
    if name == "once":
        query = rows.groupBy("key").count().writeStream.outputMode("complete")
    else:  # state in the middle of the query, too
        once = rows.groupBy(F.window("timestamp", "1 second"), "key").count()
        done = once.groupBy(F.window(F.window_time("window"), "1 second")).agg(F.sum("count").alias("count"))
        query = done.writeStream.outputMode("append")
    return query.format("memory").queryName(name).trigger(processingTime="1 second").option(
        "checkpointLocation", str(provider.folder / name)).start()

with LocalCluster() as provider:
    first = provider.add(KIND)
    provider.wait(first.name)
    builder = SparkSession.builder.master(provider.url)
    for key, value in {
        **executor_settings({BUDGET: "0.5"}),
        LIMIT: "100",
        "spark.driver.host": "127.0.0.1",
        "spark.executor.cores": "2",
        "spark.executor.memory": "512m",
        "spark.locality.wait": "0s",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.streaming.stateStore.providerClass":
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        "spark.ui.enabled": "false",
    }.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    context = spark.sparkContext
    context.setLogLevel("ERROR")
    until(lambda: warmed(context._jvm) == {"0"})
    queries = [start(spark, provider, name) for name in ("once", "twice")]
    until(lambda: all(query.lastProgress and query.lastProgress["batchId"] >= 1 for query in queries))
    second = provider.add(KIND)
    until(lambda: warmed(context._jvm) == {"0", "1"})
    folder = provider.folder / second.name
    until(lambda: words(folder).count("Finished task") >= 4)
    until(lambda: spark.table("twice").count())
    for query in queries:
        stop_between_batches(query, 1.0)  # else a batch may be in the table and not in the progress
    batches = [query.lastProgress["batchId"] + 1 for query in queries]
    counted = [[row["count"] for row in spark.table(query.name).collect()] for query in queries]
    scratch = provider.folder / "scratch"
    assert rehearsed_in(scratch)
    spark.stop()
    until(lambda: not rehearsed_in(scratch))  # executors end after their driver
    print(json.dumps({
        "first": words(provider.folder / first.name), "second": words(folder),
        "counted": counted, "batches": batches,
    }))
"""


SMALL = """
import sys
from pyspark.sql import SparkSession
from rheostat.services.local_cluster import LocalCluster
from rheostat.engines.spark.driver.executor_plugins import executor_settings
from rheostat.engines.spark.driver.warm_executors import BUDGET
from rheostat.model.configuration import NodeKind

with LocalCluster() as provider:
    node = provider.add(NodeKind(slots=2, memory_mb=1024))
    provider.wait(node.name)
    builder = SparkSession.builder.master(provider.url).config("spark.driver.host", "127.0.0.1")
    settings = {**executor_settings(), BUDGET: "soon"}
    for key, value in {**settings, "spark.executor.memory": "512m", "spark.ui.enabled": "false"}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    print("sum", spark.range(1000).selectExpr("sum(id)").first()[0])
    spark.stop()
    print("".join(log.read_text() for log in (provider.folder / node.name).glob("*/*/stderr")))
"""


def run(script: str) -> str:
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_a_new_executor_runs_every_stage_before_its_first_task_and_the_counts_stay_exact() -> None:
    output = json.loads(run(APP).splitlines()[-1])
    log = output["second"]
    rehearsed = log.index("rehearsal round 0 lane 0")
    assert rehearsed < log.index("rehearsal took") < log.index("Got assigned task")
    stages = log[rehearsed:].splitlines()[0].partition("per stage:")[2].split()
    assert len(stages) == 3 + 4
    early = [line for line in log.splitlines() if "ended early" in line]
    assert [line for line in early if "rehearsed enough" not in line] == []  # on a slow machine
    assert "rehearsal round" not in output["first"]  # there was no batch yet
    (once, twice), (batches, others) = output["counted"], output["batches"]
    assert once == [10 * batches] * 10  # ten rows of each key per batch
    assert 0 < sum(twice) <= 100 * others


@pytest.mark.long
def test_a_late_executor_skips_the_rest_of_its_rehearsal(cluster: LocalCluster, tmp_path: Path) -> None:
    start = {"in": 1, "key": 2, "total": 2}
    arguments = ("50", "microbatch", "count", str(tmp_path / "totals"))
    with application(
        cluster, tmp_path, "totals", *arguments, parallelism=start, settings={LIMIT: "0.01"}
    ) as engine:
        observe_batches(engine, 1)
        outcome = engine.apply(plan(engine, nodes=2))
        assert outcome.status is Status.APPLIED, outcome.reason
        node = names(engine)[1]
        (path,) = cluster.folder.glob(f"{node}/*/*/stderr")
        eventually(lambda: "rehearsal took" in path.read_text(), "its last words")
        log = path.read_text()
    stages = log[log.index("rehearsal round 0 lane 0") :].splitlines()[0].partition("per stage:")[2].split()
    assert len(stages) == 1
    assert "went wrong" not in log


def test_an_executor_that_a_rehearsal_broke_is_replaced_by_a_cold_one_and_the_journal_says_why(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    start = {"in": 1, "work": 1}
    with application(cluster, tmp_path, "unrehearsable", parallelism=start) as engine:
        observe_batches(engine, 1)
        outcome = engine.apply(plan(engine, nodes=2))
        assert outcome.status is Status.APPLIED, outcome.reason
        texts = [event.text for event in engine.observe().events if event.kind == "executor"]
    assert len(texts) == 1
    assert (
        "gave up its rehearsal and ended; the next ones start cold: java.lang.UnsatisfiedLinkError"
        in texts[0]
    )


@pytest.mark.long
def test_an_executor_whose_rehearsal_fails_says_so_and_works() -> None:
    output = run(SMALL)
    assert "no rehearsal: java.lang.NumberFormatException" in output
    assert "sum 499500" in output


def test_the_plugin_is_built_once_and_joins_the_user_s_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    settings = executor_settings({"spark.plugins": "their.Plugin", "spark.jars": "their.jar"})
    (jar,) = (tmp_path / "rheostat").iterdir()
    assert settings["spark.plugins"] == "their.Plugin,rheostat.Vitals,rheostat.Rehearsal"
    assert settings["spark.jars"] == f"their.jar,{jar}"
    built = jar.stat().st_mtime_ns
    executor_settings()
    assert jar.stat().st_mtime_ns == built


def test_without_a_plugin_executors_start_cold_and_one_event_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "none"))
    messages: list[str] = []
    assert executor_settings(warn=messages.append) == {}
    assert len(messages) == 1
    assert "start cold" in messages[0]
    assert list((tmp_path / "rheostat").iterdir()) == []
