"""Graphs of queries. Arguments: the shape, rows per second in all, rows in all, the folder of the results."""

import json
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

from rheostat import Application
from rheostat.engines.spark.driver.application import Load, Transform, Write

SHAPE, RATE, ROWS, FOLDER = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])


def numbers(sources: int, which: int) -> Load:
    """Every source has its share of the numbers below ROWS."""

    def load(spark: SparkSession) -> DataFrame:
        stream = spark.readStream.format("rate").option("rowsPerSecond", RATE // sources).load()
        return stream.select((F.col("value") * sources + which).alias("value")).where(F.col("value") < ROWS)

    return load


def tagged(name: str) -> Transform:
    """Note who saw a row."""
    return lambda rows: rows.select("value", F.lit(name).alias("by"))


def keep(name: str) -> Write:
    """One file per batch, by its number: a batch that runs twice writes the same file twice."""

    def save(batch: DataFrame, number: int) -> None:
        (FOLDER / name).mkdir(parents=True, exist_ok=True)
        rows = [(row["value"], row["by"]) for row in batch.collect()]
        new = FOLDER / name / f"{number}.new"
        new.write_text(json.dumps(rows))
        new.replace(FOLDER / name / f"{number}.json")  # the test reads it meanwhile

    def write(rows: DataFrame) -> DataStreamWriter:
        return rows.writeStream.outputMode("update").foreachBatch(save)

    return write


def diamond(app: Application) -> None:
    start = app.source("in", numbers(1, 0)).operator("split", tagged("split"))
    left, right = (start.operator(name, tagged(name)) for name in ("left", "right"))
    left.merge(right).operator("join", lambda rows: rows).sink("out", keep("out"))


def star(app: Application) -> None:
    sources = [app.source(f"in{n}", numbers(2, n)).operator(f"read{n}", tagged(f"read{n}")) for n in (0, 1)]
    hub = sources[0].merge(sources[1]).operator("hub", lambda rows: rows)
    for name in ("a", "b"):
        hub.operator(name, tagged(name)).sink(f"out {name}", keep(name))


def broken(app: Application) -> None:
    """One of two readers fails at the same row for ever."""
    start = app.source("in", numbers(1, 0)).operator("split", tagged("split"))
    start.operator("good", tagged("good")).sink("out good", keep("good"))
    fails = "if(value = 100, raise_error('row 100 is poison'), value) as value"
    start.operator("bad", lambda rows: rows.selectExpr(fails, "'bad' as by")).sink("out bad", keep("bad"))


def topology10(app: Application) -> None:
    """P4's: each operator hands its rows on in fixed shares."""
    shares = {
        "1": {"2": 0.44, "3": 0.33, "4": 0.23},
        "2": {"5": 0.6, "6": 0.4},
        "3": {"7": 0.6, "8": 0.4},
        "4": {"9": 0.6, "10": 0.4},
    }
    rows = {"1": app.source("in", numbers(1, 0)).operator("1", tagged("1"))}
    for name, children in shares.items():
        low = 0.0
        for child, share in children.items():
            bucket = f"pmod(xxhash64(value, '{name}'), 10000)"
            selected = rows[name].where(
                f"{bucket} >= {low * 10000:.0f} and {bucket} < {(low + share) * 10000:.0f}"
            )
            rows[child] = selected.operator(child, tagged(child))
            low += share
            if child not in shares:
                rows[child].sink(f"out {child}", keep(child))


app = Application(SHAPE, trigger_seconds=2, link_partitions=2)
{"diamond": diamond, "star": star, "broken": broken, "topology10": topology10}[SHAPE](app)

if __name__ == "__main__":
    app.run()
