"""The applications' results on small data are those of a plain reference, streamed in several batches."""

import json
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from rheostat.apps.comd import app as comd
from rheostat.apps.comd.crystal import Crystal
from rheostat.apps.ddos import app as ddos
from rheostat.apps.ddos.learn import Quality, judge, periods
from rheostat.apps.ddos.model import learn, load_model
from rheostat.apps.ddos.traffic import BEGAN, Traffic
from rheostat.apps.inputs import Input
from rheostat.apps.modelled import modelled
from rheostat.apps.sentiment import app as sentiment
from rheostat.apps.text import BLAME, PRAISE, STOP_WORDS, sentences
from rheostat.apps.topk import app as topk
from rheostat.apps.wordcount import app as wordcount
from rheostat.engines.spark.driver.application import Application
from rheostat.engines.spark.driver.builder import Builder
from rheostat.engines.spark.driver.query_topics import QueryTopics
from rheostat.model.topology import Topology
from rheostat.model.topology_file import find_topology

from .frames import frames, last_frames

ROWS, PER_SECOND, BATCHES = 600, 10, 4
BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
Results = list[dict[str, Any]]


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.sql.shuffle.partitions", "2")
    session = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    context: Any = SparkContext
    gateway = context._gateway
    session.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()  # what its JVM lives by
    gateway.proc.wait()
    context._gateway = context._jvm = None


@dataclass(frozen=True)
class Files(Input):
    """Numbers from files, one to a batch; the last is far ahead, so that the windows before it end."""

    folder: str = ""

    def numbers(self, spark: SparkSession) -> DataFrame:
        reader = spark.readStream.schema("value bigint, timestamp timestamp")
        return reader.option("maxFilesPerTrigger", 1).json(self.folder)


def written(folder: Path, rows: int = ROWS, last: int = ROWS) -> Files:
    """Files of rows 0, 1, 2, ..., and one with the row that comes last."""
    (folder / "in").mkdir()
    bounds = [rows * n // BATCHES for n in range(BATCHES + 1)]
    parts = [range(low, high) for low, high in pairwise(bounds)]
    for number, part in enumerate([*parts, [last]]):
        far = timedelta(hours=1) if number == len(parts) else timedelta()
        lines = [{"value": n, "timestamp": (time_of(n) + far).isoformat()} for n in part]
        file = folder / "in" / f"{number}.json"
        file.write_text("\n".join(map(json.dumps, lines)))
        os.utime(file, (number, number))  # Spark reads the oldest first; two of one millisecond in any order
    return Files(folder=str(folder / "in"), out=str(folder / "out"))


def time_of(number: int) -> datetime:
    return BEGINNING + timedelta(seconds=number / PER_SECOND)


def stream(spark: SparkSession, app: Application, checkpoints: Path) -> None:
    """Run each chain of an application to the end of its files."""
    for last, rows in last_frames(app, spark).items():
        sink, write = app.sinks[last]
        writer = write(rows).option("checkpointLocation", str(checkpoints / sink))
        writer.trigger(availableNow=True).start().awaitTermination()


def results(given: Input, folder: str = "results") -> Results:
    """What was written, batch after batch."""
    result = [path for path in (Path(given.out) / folder).glob("*/*.json") if path.stat().st_size]
    result.sort(key=lambda path: int(path.parent.name))
    return [json.loads(line) for path in result for line in path.read_text().splitlines()]


def texts(spark: SparkSession, rows: int = ROWS + 1) -> list[str]:
    made = sentences(spark.range(rows).withColumnRenamed("id", "value"))
    return [row["text"] for row in made.orderBy("value").collect()]


def test_wordcount(spark: SparkSession, tmp_path: Path) -> None:
    given = written(tmp_path)
    stream(spark, wordcount.build(given), tmp_path)
    counted = {row["word"]: row["count"] for row in results(given)}  # the last word on each counts
    assert counted == Counter(word for text in texts(spark) for word in text.split())
    assert sum(counted.values()) == 8 * (ROWS + 1)


def test_topk(spark: SparkSession, tmp_path: Path) -> None:
    given = written(tmp_path)
    stream(spark, topk.build(given), tmp_path)
    windows: dict[datetime, Counter[str]] = {}
    for number, text in enumerate(texts(spark, ROWS)):
        at = time_of(number)
        first = at - timedelta(seconds=at.timestamp() % 5)
        for back in range(4):
            counter = windows.setdefault(first - timedelta(seconds=5 * back), Counter())
            counter.update(word for word in text.split() if word not in STOP_WORDS)
    expected = {
        start: sorted(((count, word) for word, count in counter.items()), reverse=True)[: topk.TOP]
        for start, counter in windows.items()
    }
    result = {
        datetime.fromisoformat(row["window"]["start"]): [
            (item["count"], item["word"]) for item in row["best"]
        ]
        for row in results(given)
    }
    assert result == expected


def test_sentiment(spark: SparkSession, tmp_path: Path) -> None:
    given = written(tmp_path)
    stream(spark, sentiment.build(given), tmp_path)

    def score(text: str) -> float:
        total, before = 0.0, ""
        for word in text.split():
            value = (word in PRAISE) - (word in BLAME)
            total += value * {"not": -1.0, "very": 1.5}.get(before, 1.0)
            before = word
        return total

    expected = {number: score(text) for number, text in enumerate(texts(spark))}
    result = results(given)
    assert {row["value"]: row["score"] for row in result} == expected
    moods = Counter(row["mood"] for row in result)
    assert set(moods) == {"content", "discontent", "neutral"}
    assert moods["content"] == sum(score > 0 for score in expected.values())


def test_comd(spark: SparkSession, tmp_path: Path) -> None:
    crystal, iterations = Crystal(cells=4, seed=5), 40
    given = replace(written(tmp_path, iterations, last=1000), cells=crystal.cells, seed=crystal.seed)
    stream(spark, comd.build(given), tmp_path)
    blocks = crystal.blocks(spark.range(iterations).withColumnRenamed("id", "value"))
    places = np.zeros((iterations, crystal.atoms, 3))
    for row in blocks.collect():
        first = row["block"] * 1000
        at = np.array([row["x"], row["y"], row["z"]]).T
        places[row["iteration"], first : first + len(at)] = at
    assert crystal.atoms == 256 and places.max() > 3

    cells = (np.mod(places, 4) / (4 / comd.GRID)).astype(int)
    numbers = (cells[..., 0] * comd.GRID + cells[..., 1]) * comd.GRID + cells[..., 2]
    expected = {
        (step, int(cell)): int(count)
        for step in range(iterations)
        for cell, count in zip(*np.unique(numbers[step], return_counts=True), strict=True)
    }
    assert {(row["iteration"], row["cell"]): row["atoms"] for row in results(given, "cells")} == expected

    went = np.linalg.norm(np.diff(places, axis=0), axis=2)
    result = {row["iteration"]: row for row in results(given, "distances")}
    assert set(result) == set(range(1, iterations))
    for step, item in result.items():
        assert item["atoms"] == crystal.atoms
        assert item["distance"] == pytest.approx(went[step - 1].sum(), rel=1e-4)
        assert item["most"] == pytest.approx(went[step - 1].max(), rel=1e-4)


@pytest.mark.no_jvm
def test_32_000_atoms_are_the_default() -> None:
    assert Crystal().atoms == 32_000


def test_ddos_streams_the_same_periods_as_its_batch_job(spark: SparkSession, tmp_path: Path) -> None:
    given = written(tmp_path, 6000, last=50_000)
    stream(spark, ddos.build(given), tmp_path)
    model, traffic = load_model(ddos.MODEL), Traffic(given.seed)
    batch = periods(spark, traffic, 15).select("period", model.score().alias("score"), "busiest").collect()
    expected = {row["period"].replace(tzinfo=UTC): row for row in batch}
    result = {datetime.fromisoformat(row["period"]): row for row in results(given)}
    assert len(result) > 20 and set(expected) <= set(result)
    whole = sorted(expected)[:-1]  # the last one has packets after the batch job's last
    for period in whole:
        assert result[period]["score"] == pytest.approx(expected[period]["score"])
        assert result[period]["attack"] == (result[period]["score"] > model.threshold)


def test_features_of_a_period_equal_a_plain_computation(spark: SparkSession) -> None:
    traffic = Traffic(7)
    numbers = spark.range(400).withColumnRenamed("id", "value")
    lines = [row["line"].split() for row in traffic.packets(numbers).collect()]
    begun = [(float(at), source, to, int(size)) for at, source, _, to, _, size in lines]
    first = [packet for packet in begun if packet[0] < BEGAN + 60]
    pairs = {
        (source, to): sorted(p[0] for p in first if p[1:3] == (source, to)) for _, source, to, _ in first
    }
    gaps = np.array([late - early for times in pairs.values() for early, late in pairwise(times)])
    unsteady = (gaps**2).mean() / (gaps.mean() ** 2 + 1e-9)
    sizes = [packet[3] for packet in first]
    plain = [
        len(first), sum(sizes), len(pairs), len({to for _, to in pairs}),
        max(map(len, pairs.values())), sum(size < 40 for size in sizes), gaps.mean(), unsteady,
    ]  # fmt: skip
    row = periods(spark, traffic, 1).orderBy("period").first()
    assert row is not None
    assert row["features"] == pytest.approx(np.log1p(plain).tolist(), rel=1e-6)


def test_the_model_that_comes_with_rheostat_finds_attacks_in_traffic_that_it_never_saw(
    spark: SparkSession,
) -> None:
    unseen = Traffic(12)
    check_quality(judge(load_model(ddos.MODEL), periods(spark, unseen, 300), unseen))


def test_a_learned_model_takes_its_training_traffic_for_normal(spark: SparkSession, tmp_path: Path) -> None:
    normal = periods(spark, Traffic(11, attacks=False), 60).persist()
    learned = learn(normal)
    learned.save(tmp_path / "model.json")
    model = load_model(tmp_path / "model.json")
    scores = [row["score"] for row in normal.select(model.score().alias("score")).collect()]
    assert len(scores) >= 60 and min(scores) > 0
    assert max(scores) <= model.threshold == pytest.approx(1.1 * max(scores))


@pytest.mark.long
def test_a_model_that_is_learned_finds_attacks_in_traffic_that_it_never_saw(spark: SparkSession) -> None:
    minutes, unseen = 800, Traffic(12)
    model = learn(periods(spark, Traffic(11, attacks=False), minutes))
    check_quality(judge(model, periods(spark, unseen, minutes), unseen))


def check_quality(quality: Quality) -> None:
    assert quality.detected > 20
    assert quality.precision >= 0.9 and quality.recall >= 0.9, quality


class Range(Input):
    """Numbers at once instead of in time."""

    rows = 20_000

    def numbers(self, spark: SparkSession) -> DataFrame:
        return spark.range(self.rows).withColumnRenamed("id", "value")


def cheap(topology: Topology) -> Topology:
    operators = [replace(item, cost_seconds=item.cost_seconds / 1000) for item in topology.operators]
    return replace(topology, operators=tuple(operators))


@pytest.mark.parametrize("name", ["linear", "star", "diamond", "topology10"])
def test_rows_of_a_modelled_topology_take_its_streams_in_their_shares(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    topology = cheap(find_topology(name))
    app = modelled(topology, Range())
    result = {name: rows.count() for name, rows in frames(app, spark).items()}
    load = {source: topology.operator(source).load or 1.0 for source in topology.sources}
    for operator in topology.order:
        if operator in load:
            share = load[operator] / sum(load.values())
            assert result[operator] == pytest.approx(share * Range.rows, rel=0.05), operator
            continue
        expected = sum(
            result[stream.upstream] * stream.rows_per_row
            for stream in topology.streams
            if stream.downstream == operator
        )
        assert result[operator] == pytest.approx(expected, rel=0.05), operator


def test_operators_that_wait_take_their_costs(spark: SparkSession) -> None:
    class Few(Input):
        def numbers(self, spark: SparkSession) -> DataFrame:
            return spark.range(0, 100, 1, 1).withColumnRenamed("id", "value")

    [rows] = last_frames(modelled(find_topology("linear"), Few(wait=2)), spark).values()
    rows.collect()  # planned and compiled
    began = time.monotonic()
    assert {row["value"] for row in rows.collect()} == set(range(100))
    assert time.monotonic() - began >= 100 * 2 * 0.005 * 0.9


class Somewhere(QueryTopics):
    """Topics that nobody wrote yet, as files: a query's plan is known without a broker."""

    partitions = 1

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)

    def topic(self, operator: str, reader: str | None = None) -> str:
        return f"{operator}.to.{reader}"

    def read(self, topics: Iterable[str], schema: StructType) -> DataFrame:
        return SparkSession.active().read.schema(schema).json(self.folder)


@pytest.mark.parametrize("wait", [0.0, 2.0])
@pytest.mark.parametrize("name", ["linear", "star", "diamond", "topology10"])
def test_every_query_of_a_modelled_topology_does_the_work_of_each_of_its_operators_once(
    spark: SparkSession, tmp_path: Path, name: str, wait: float
) -> None:
    builder = Builder(modelled(find_topology(name), Range(wait=wait)), spark, Somewhere(tmp_path))
    for query in builder.parts:
        rows: Any = builder.rows(query)
        plan = rows._jdf.queryExecution().optimizedPlan().toString()
        once = "parkNanos" if wait else "lambdafunction(aggregate("
        assert plan.count(once) == len(query.steps), plan
