"""How long a batch takes by the number of its state partitions: predicted from one number, and measured.

A plain sliding-window count, as NEXMark's query 5 does it, on one and two nodes of the embedded cluster. All
runs share one application, so that only the first has cold executors.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from rheostat.analyze.evaluation import evaluate
from rheostat.analyze.execution import Staged
from rheostat.engines.spark.described_topology import topology
from rheostat.engines.spark.driver import janino
from rheostat.engines.spark.driver.script_query import ScriptQuery
from rheostat.engines.spark.events import parse_events
from rheostat.engines.spark.observe.application_measures import application
from rheostat.engines.spark.observe.batches import Batch, Ledger
from rheostat.engines.spark.observe.operator_measures import operators
from rheostat.engines.spark.observe.query_window import Query
from rheostat.engines.spark.protocol import Description
from rheostat.engines.spark.spec import Spec
from rheostat.model.configuration import NodeKind
from rheostat.model.observation import NodeMeasures, Observation
from rheostat.services.local_cluster import LocalCluster

KIND = NodeKind(cores=0.7, slots=2, memory_mb=1600.0)
RATE, KEYS, TRIGGER_SECONDS = 2_000, 1_000, 3.0
BATCHES = {200: 3, 400: 2, 100: 3, 50: 4, 16: 5, 4: 7}  # that count, per number of partitions, in this order
COLD, WARM = 2, 1  # batches that do not count: with a new executor, and with executors that worked before
REFERENCES = (200, 16)  # numbers of partitions, on one node, from which the others are predicted
NODES = (1, 2)
MAX_ERROR = 0.20
MOST_SECONDS = 200.0  # for the batches of one run
JVM = "-XX:TieredStopAtLevel=1"  # the optimizing compiler would be at work during the first minutes
STREAM = (
    {"rowsPerSecond": str(RATE), "numPartitions": "2"},
    "10 seconds",  # of the window and the watermark
    "2 seconds",  # from one window to the next
)


@dataclass(frozen=True)
class Run:
    """What one run measured."""

    nodes: int
    partitions: int
    seconds: float  # the median of its batches
    cost: float  # of a partition
    model: Staged
    busy: dict[str, float]
    parallelism: dict[str, int]

    def predict(self, nodes: int, partitions: int) -> float:
        """How long a batch would take with other nodes and partitions."""
        counts = dict.fromkeys(self.model.partition_seconds, partitions)
        return self.model.batch_seconds(self.busy, self.parallelism, nodes * KIND.slots, counts)


@contextmanager
def cluster(folder: str) -> Iterator[tuple[LocalCluster, SparkSession, Any]]:
    with LocalCluster() as nodes:
        first = nodes.wait(nodes.add(KIND).name)
        spec = Spec("partitions", "", nodes.url, folder, folder, folder, executor_memory_mb=900)
        settings: dict[str, Any] = {**spec.spark_settings(), "spark.executor.extraJavaOptions": JVM}
        spark = SparkSession.builder.master(nodes.url).config(map=settings).getOrCreate()
        try:
            context: Any = spark.sparkContext
            context.setLogLevel("OFF")
            tap = janino.load(spark, "StageTap")
            context._jsc.sc().addSparkListener(tap)
            wait_for_executors(spark, 1)
            nodes.limit(first.name)
            yield nodes, spark, tap
        finally:
            spark.stop()


def wait_for_executors(spark: SparkSession, count: int) -> None:
    context: Any = spark.sparkContext
    until = time.monotonic() + 60
    while context._jsc.sc().schedulerBackend().getExecutorIds().size() < count:
        if time.monotonic() > until:
            raise TimeoutError(f"{count} executors took more than 60 s")
        time.sleep(0.2)


def start(spark: SparkSession, partitions: int, checkpoint: Path) -> Any:
    options, window, slide = STREAM
    spark.conf.set("spark.sql.shuffle.partitions", partitions)
    rows = spark.readStream.format("rate").options(**options).load()
    bids = rows.select((F.col("value") % KEYS).alias("auction"), "timestamp").withWatermark(
        "timestamp", window
    )
    hot = bids.groupBy(F.window("timestamp", window, slide), "auction").count()
    sink = hot.writeStream.format("noop").outputMode("update").option("checkpointLocation", str(checkpoint))
    return sink.trigger(processingTime=f"{TRIGGER_SECONDS:g} seconds").start()


def run(spark: SparkSession, tap: Any, nodes: int, partitions: int, folder: str, cold: int) -> Run:
    """Run the query until enough batches with rows have ended."""
    parse_events(tap.drain())
    query = start(spark, partitions, Path(folder) / f"{nodes}-{partitions}")
    read = ScriptQuery(query, "counts")
    seen, batches = Query("hot", ("scan",), Ledger(time.time()), TRIGGER_SECONDS), list[Batch]()
    until = time.monotonic() + MOST_SECONDS
    status = read.describe(None)
    try:
        while len(batches) < cold + BATCHES[partitions] and time.monotonic() < until:
            time.sleep(0.2)
            events = parse_events(tap.drain())
            status = read.describe(None)
            seen.update(status)
            batches += [batch for batch in seen.ledger.read(events)[0] if batch.input_rows]
    finally:
        query.stop()
    if len(batches) <= cold:
        raise TimeoutError(f"{partitions} partitions: {len(batches)} batches in {MOST_SECONDS:g} s")
    described = Description(None, TRIGGER_SECONDS, True, {}, {}, 0, (status,))
    return measured(described, seen, batches[cold - 1 :], nodes, partitions)


def measured(described: Description, seen: Query, batches: list[Batch], nodes: int, partitions: int) -> Run:
    """Measure as the engine does, by the same parts; the first batch is only the one before the others."""
    shape, slots = topology("hot", described, False), nodes * KIND.slots
    seen.operators, seen._cold = shape.names, 0
    for batch in batches:
        seen.add(batch, slots)
    last = seen.batches[-1]
    window = seen.window(False, 0.0, last.finished)
    first, *counted = window.batches
    window = type(window)(first, tuple(counted), False, last.finished)
    for kept in (seen.overheads, *seen.partition_costs.values()):
        kept.popleft()
    model = Staged(
        TRIGGER_SECONDS,
        statistics.median(seen.overheads),
        shape.pinned,
        node_slots=KIND.slots,
        alone=min(KIND.slots, 1 / KIND.slot_cores),
        partition_seconds={name: statistics.median(costs) for name, costs in seen.partition_costs.items()},
    )
    machines = tuple(NodeMeasures(f"n{n}", KIND.slots, KIND.cores) for n in range(nodes))
    rows = operators(shape, shape.names, window, seen.shares(), shape.pinned, {}, {})
    whole = application({shape.sources[0]: 1.0}, window, TRIGGER_SECONDS)
    observation = Observation(0.0, last.finished, rows, machines, whole)
    evaluation = evaluate(shape, observation, model, KIND)
    if evaluation.missing:
        raise RuntimeError(f"not measured: {', '.join(evaluation.missing)}")
    return Run(
        nodes,
        partitions,
        statistics.median(batch.seconds for batch in counted),
        next(iter(model.partition_seconds.values())),
        model,
        evaluation.busy,
        dict(shape.pinned),
    )


def runs() -> Iterator[Run]:
    with tempfile.TemporaryDirectory(prefix="rheostat-bench-") as folder, cluster(folder) as started:
        nodes, spark, tap = started
        for count in NODES:
            if count > 1:
                added = nodes.wait(nodes.add(KIND).name)
                wait_for_executors(spark, count)
                nodes.limit(added.name)
            for index, partitions in enumerate(BATCHES):
                yield run(spark, tap, count, partitions, folder, WARM if index else COLD)


def main() -> int:
    print("  nodes  partitions  batch (s)  a partition (ms)  rest (s)")
    made = []
    for one in runs():
        rest = one.model.stage_overhead_seconds * len(one.busy)
        print(
            f"  {one.nodes:5}  {one.partitions:10}  {one.seconds:9.2f}  {1000 * one.cost:16.0f}  {rest:8.2f}",
            flush=True,
        )
        made.append(one)
    sources = [one for one in made if one.nodes == 1 and one.partitions in REFERENCES]
    titles = [f"from {source.partitions} (s)  error" for source in sources]
    print(f"\n  nodes  partitions  batch (s)  {'  '.join(titles)}")
    worst = 0.0
    for one in made:
        told = [source.predict(one.nodes, one.partitions) for source in sources]
        errors = [value / one.seconds - 1 for value in told]
        worst = max([worst, *map(abs, errors)])
        cells = "  ".join(
            f"{value:{len(title) - 7}.2f}  {error:+5.0%}"
            for value, error, title in zip(told, errors, titles, strict=True)
        )
        print(f"  {one.nodes:5}  {one.partitions:10}  {one.seconds:9.2f}  {cells}")
    good = worst <= MAX_ERROR
    print(f"  largest error {worst:.0%} (bound {MAX_ERROR:.0%})  {'ok' if good else 'FAILED'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
