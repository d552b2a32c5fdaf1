"""Where an application's rows come from: numbers 0, 1, 2, ... at a curve's rate, or from a Kafka topic.

What a row says follows from its number, so that two runs see the same rows and a reference can be worked out.
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

from rheostat.apps.load import LiveStream, arrivals, flood, stream
from rheostat.engines.spark.driver import runner
from rheostat.engines.spark.driver.application import Application, Rows, Transform, Write
from rheostat.model.errors import UserError

MOST_PARTITIONS = 64
MOST_WAIT = 1000.0
MOST_CELLS = 60  # 864,000 atoms
ROW = "n bigint, sent bigint"  # of what `rheostat load run` sends


@dataclass(frozen=True)
class Input:
    """What the command line of an application says."""

    curve: str = "sine"
    seed: int = 0
    topic: str = ""  # of the broker of `rheostat run --kafka`; empty: the curve
    out: str = ""  # a folder for the results
    partitions: int = 1  # tasks that read the curve
    wait: float = 0.0  # the operators of a modelled topology wait so many times their cost; 0: they compute
    flood: int = 0  # rows in every batch, one batch after the other; 0: the curve
    model: str = ""  # of ddos; empty: its own
    cells: int = 20  # a side of comd's crystal, four atoms each

    def read(
        self, app: Application, name: str, made: Transform = lambda rows: rows, *, whole: bool = True
    ) -> Rows:
        """Numbers, and what is made of them, as a source of an application; or of a part of the numbers."""
        tasks = 1 if is_real_time() else self.partitions  # of a topic: as many as it has partitions
        return app.source(
            name,
            lambda spark: made(self.numbers(spark)),
            parallelism=tasks,
            arrived=self.arrived if whole else None,
        )

    def sink(self, mode: str = "update", folder: str = "results") -> Write:
        """Results go to a folder of JSON per batch; else nowhere."""

        def save(batch: DataFrame, number: int) -> None:  # a batch that runs twice writes the same twice
            batch.coalesce(1).write.mode("overwrite").json(f"{self.out}/{folder}/{number}")

        def write(rows: DataFrame) -> DataStreamWriter:
            writer = rows.writeStream.outputMode(mode)
            return writer.foreachBatch(save) if self.out else writer.format("noop")

        return write

    def numbers(self, spark: SparkSession) -> DataFrame:
        """Rows `value` (the number) and `timestamp` (when it came)."""
        if self.topic:
            return from_topic(spark, servers(), self.topic)
        if is_real_time():
            return self._live.load(spark).withColumn("timestamp", F.current_timestamp())
        if self.flood:
            return flood(spark, self.flood, self.partitions)
        return stream(spark, self.curve, self.seed, self.partitions).select("value", "timestamp")

    @property
    def arrived(self) -> Callable[[], float] | None:
        """Rows that were offered so far, where Spark cannot tell."""
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
    """The broker of `rheostat run --kafka`."""
    given = runner.current.spec.kafka if runner.current else None
    if not given:
        raise UserError("--topic needs a broker: add --kafka HOST:PORT to `rheostat run`")
    return given


def from_topic(spark: SparkSession, servers: str, topic: str) -> DataFrame:
    """The rows that `rheostat load run --kafka TOPIC` sends."""
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers)
    rows = reader.option("subscribe", topic).option("startingOffsets", "earliest").load()
    row = F.from_json(F.col("value").cast("string"), ROW)
    return rows.select(row.alias("row")).selectExpr(
        "row.n as value", "timestamp_millis(row.sent) as timestamp"
    )


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One line for the user of `rheostat run`, who does not see what a driver prints."""
        raise UserError(message)


def read_input(about: str | None, arguments: Sequence[str] | None = None) -> Input:
    """Read the command line of an application."""
    parser = _Parser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    given = Input()
    parser.add_argument("curve", nargs="?", default=given.curve, help="rows/s: see `rheostat load list`")
    parser.add_argument("--seed", type=int, default=given.seed)
    parser.add_argument("--partitions", type=int, default=1, help="tasks that read the curve, 1 to 64")
    parser.add_argument(
        "--wait",
        type=float,
        default=0.0,
        metavar="TIMES",
        help="linear, star, ...: operators do not compute, they wait so many times their cost",
    )
    parser.add_argument("--flood", type=int, default=0, metavar="N", help="no curve: N rows in every batch")
    parser.add_argument("--model", default="", metavar="FILE", help="ddos: what `learn` wrote; else its own")
    parser.add_argument("--cells", type=int, default=given.cells, help="comd: a side; 20 are 32,000 atoms")
    parser.add_argument("--topic", default="", help="read what `rheostat load run` sends there")
    parser.add_argument("--out", default="", metavar="FOLDER", help="keep the results, as JSON per batch")
    read = Input(**vars(parser.parse_args(arguments)))
    if not 1 <= read.partitions <= MOST_PARTITIONS:
        parser.error(f"--partitions must be from 1 to {MOST_PARTITIONS}, not {read.partitions}")
    if not 0 <= read.wait <= MOST_WAIT:
        parser.error(f"--wait must be from 0 to {MOST_WAIT:g}, not {read.wait:g}")
    if not 1 <= read.cells <= MOST_CELLS:
        parser.error(f"--cells must be from 1 to {MOST_CELLS}, not {read.cells}")
    if read.flood < 0 or (read.flood and (read.topic or is_real_time())):
        parser.error("--flood takes a number of rows, in micro-batches and without --topic")
    if read.out and is_real_time():
        parser.error("--out needs micro-batches: leave it or --mode realtime out")
    return read
