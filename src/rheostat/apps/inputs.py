"""Where an application's rows come from: numbers 0, 1, 2, ... at a curve's rate, or from a Kafka topic.

A row's content follows from its number, so that two runs see the same rows and tests can compute a reference.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NoReturn

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

from rheostat.apps.live_stream import LiveStream, arrivals, flood, stream
from rheostat.engines.spark.driver import runner
from rheostat.engines.spark.driver.application import Application, Rows, Transform, Write
from rheostat.model.errors import UserError

MAX_PARTITIONS = 64
MAX_WAIT = 1000.0
MAX_CELLS = 60  # 864,000 atoms
ROW = "n bigint, sent bigint"  # of what `rheostat load run` sends


@dataclass(frozen=True)
class Input:
    """The options of an application."""

    curve: str = "sine"
    seed: int = 0
    topic: str = ""  # of the broker of `rheostat run --kafka`; empty: the curve
    out: str = ""  # a folder for the results
    partitions: int = 1  # tasks that read the curve
    wait: float = 0.0  # operators of a modelled topology wait this many times their cost; 0: they compute
    flood: int = 0  # rows per batch, without pause between batches; 0: follow the curve
    model: str = ""  # of ddos; empty: the built-in model
    cells: int = 20  # per side of comd's crystal, four atoms each

    def read(
        self, app: Application, name: str, made: Transform = lambda rows: rows, *, whole: bool = True
    ) -> Rows:
        """Return a source of the application: the numbers, or a part of them, transformed by `made`."""
        tasks = 1 if is_real_time() else self.partitions  # of a topic: as many as it has partitions
        return app.source(
            name,
            lambda spark: made(self.numbers(spark)),
            parallelism=tasks,
            arrived=self.arrived if whole else None,
        )

    def sink(self, mode: str = "update", folder: str = "results") -> Write:
        """Return a sink: a folder of JSON per batch, or nothing."""

        def save(batch: DataFrame, number: int) -> None:  # a repeated batch overwrites its results
            batch.coalesce(1).write.mode("overwrite").json(f"{self.out}/{folder}/{number}")

        def write(rows: DataFrame) -> DataStreamWriter:
            writer = rows.writeStream.outputMode(mode)
            return writer.foreachBatch(save) if self.out else writer.format("noop")

        return write

    def numbers(self, spark: SparkSession) -> DataFrame:
        """Return rows `value` (the number) and `timestamp` (its arrival)."""
        if self.topic:
            return from_topic(spark, servers(), self.topic)
        if is_real_time():
            return self._live.load(spark).withColumn("timestamp", F.current_timestamp())
        if self.flood:
            return flood(spark, self.flood, self.partitions)
        return stream(spark, self.curve, self.seed, self.partitions).select("value", "timestamp")

    @property
    def arrived(self) -> Callable[[], float] | None:
        """Return a function that counts the offered rows, where Spark cannot."""
        if self.topic or self.flood:
            return None
        if is_real_time():
            return self._live.arrived
        if runner.current is None:
            return None
        return arrivals(self.curve, self.seed, self.partitions, Path(runner.current.spec.checkpoint))

    @cached_property
    def _live(self) -> LiveStream:
        return LiveStream(self.curve, self.seed)


def is_real_time() -> bool:
    """Whether `rheostat run --mode realtime` runs this."""
    return runner.current is not None and runner.current.spec.mode == "realtime"


def servers() -> str:
    """Return the broker of `rheostat run --kafka`."""
    given = runner.current.spec.kafka if runner.current else None
    if not given:
        raise UserError("--topic needs a broker: add --kafka HOST:PORT to `rheostat run`")
    return given


def from_topic(spark: SparkSession, servers: str, topic: str) -> DataFrame:
    """Return the rows that `rheostat load run --kafka TOPIC` sends."""
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers)
    rows = reader.option("subscribe", topic).option("startingOffsets", "earliest").load()
    row = F.from_json(F.col("value").cast("string"), ROW)
    return rows.select(row.alias("row")).selectExpr(
        "row.n as value", "timestamp_millis(row.sent) as timestamp"
    )


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Raise a one-line error: the user of `rheostat run` does not see the driver's output."""
        raise UserError(message)


def read_input(about: str | None, arguments: Sequence[str] | None = None) -> Input:
    """Read the command line of an application."""
    parser = _Parser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    given = Input()
    parser.add_argument("curve", nargs="?", default=given.curve, help="rows/s: see `rheostat load list`")
    parser.add_argument("--seed", type=int, default=given.seed)
    parser.add_argument(
        "--partitions", type=int, default=1, help="number of tasks that read the curve, 1 to 64"
    )
    parser.add_argument(
        "--wait",
        type=float,
        default=0.0,
        metavar="TIMES",
        help="linear, star, ...: operators wait this many times their cost instead of computing",
    )
    parser.add_argument(
        "--flood", type=int, default=0, metavar="N", help="send N rows in every batch instead of a curve"
    )
    parser.add_argument(
        "--model",
        default="",
        metavar="FILE",
        help="ddos: a model written by `learn` (default: the built-in one)",
    )
    parser.add_argument(
        "--cells", type=int, default=given.cells, help="comd: cells per side; 20 make 32,000 atoms"
    )
    parser.add_argument("--topic", default="", help="read what `rheostat load run` sends there")
    parser.add_argument("--out", default="", metavar="FOLDER", help="keep the results, as JSON per batch")
    read = Input(**vars(parser.parse_args(arguments)))
    if not 1 <= read.partitions <= MAX_PARTITIONS:
        parser.error(f"--partitions must be from 1 to {MAX_PARTITIONS}, not {read.partitions}")
    if not 0 <= read.wait <= MAX_WAIT:
        parser.error(f"--wait must be from 0 to {MAX_WAIT:g}, not {read.wait:g}")
    if not 1 <= read.cells <= MAX_CELLS:
        parser.error(f"--cells must be from 1 to {MAX_CELLS}, not {read.cells}")
    if read.flood < 0 or (read.flood and (read.topic or is_real_time())):
        parser.error("--flood needs a number of rows, works in micro-batches only and not with --topic")
    if read.out and is_real_time():
        parser.error("--out works in micro-batches only: omit it or --mode realtime")
    return read
