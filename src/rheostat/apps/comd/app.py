"""What the atoms of a simulation do (P0's application): where they are, and how far they travel.

Two analyses of the same iterations, each a query of its own: the atoms in each cell of a grid, and the
distance that they went since the iteration before. The curve is in iterations per second.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from rheostat.apps.comd.crystal import Crystal
from rheostat.apps.inputs import Input, read_input
from rheostat.engines.spark.driver.application import Application, Transform

GRID = 10  # cells of the histogram a side
LATENESS = "20 seconds"  # in iterations: an iteration's time is its number in seconds
STATE_PARTITIONS = 4
PLACES = "struct<x:array<float>,y:array<float>,z:array<float>>"


def locate(crystal: Crystal) -> Transform:
    """Return the grid cell of each atom."""
    width = crystal.cells / GRID

    def transform(rows: DataFrame) -> DataFrame:
        atoms = rows.select("iteration", F.explode(F.arrays_zip("x", "y", "z")).alias("at"))
        along = [F.floor(F.pmod(F.col(f"at.{axis}"), F.lit(crystal.cells)) / width) for axis in "xyz"]
        return atoms.select("iteration", ((along[0] * GRID + along[1]) * GRID + along[2]).alias("cell"))

    return transform


def histogram(rows: DataFrame) -> DataFrame:
    """Return the number of atoms in each cell of each iteration."""
    return _timed(rows).groupBy("time", "iteration", "cell").agg(F.count("*").alias("atoms"))


def meet(rows: DataFrame) -> DataFrame:
    """Return every block of atoms twice: after a step, and before the next step."""
    here, nowhere = F.struct("x", "y", "z"), F.lit(None).cast(PLACES)
    after = F.struct("iteration", here.alias("after"), nowhere.alias("before"))
    next_iteration = (F.col("iteration") + 1).alias("iteration")
    before = F.struct(next_iteration, nowhere.alias("after"), here.alias("before"))
    return rows.select("block", F.explode(F.array(after, before)).alias("side")).select("block", "side.*")


def travel(rows: DataFrame) -> DataFrame:
    """Return how far the atoms of each block went in each step."""
    sides = (F.first(side, ignorenulls=True).alias(side) for side in ("after", "before"))
    both = _timed(rows).groupBy("time", "iteration", "block").agg(*sides)
    squares = [
        F.zip_with(f"after.{axis}", f"before.{axis}", lambda late, early: (late - early) * (late - early))
        for axis in "xyz"
    ]
    plus = F.zip_with(F.zip_with(squares[0], squares[1], _add), squares[2], _add)
    went = both.where("after is not null and before is not null").select(
        "time", "iteration", F.transform(plus, F.sqrt).alias("went")
    )
    far = F.aggregate("went", F.lit(0.0), _add)
    return went.select(
        "time",
        "iteration",
        F.size("went").alias("atoms"),
        far.alias("distance"),
        F.array_max("went").alias("most"),
    )


def total(rows: DataFrame) -> DataFrame:
    """Return how far all atoms went in each step, and the largest distance."""
    whole = rows.groupBy("time", "iteration")
    return whole.agg(
        F.sum("atoms").alias("atoms"), F.sum("distance").alias("distance"), F.max("most").alias("most")
    )


def build(given: Input) -> Application:
    """The application, ready to run."""
    crystal = Crystal(given.cells, given.seed)
    app = Application("comd", trigger_seconds=2)
    (
        given.read(app, "positions", crystal.blocks)
        .operator("locate", locate(crystal), max_parallelism=16)
        .operator("histogram", histogram, keys=["cell"], stateful=True, max_parallelism=STATE_PARTITIONS)
        .sink("cells", given.sink("append", "cells"))
    )
    (
        given.read(app, "steps", crystal.blocks)
        .operator("meet", meet, max_parallelism=16)
        .operator("travel", travel, keys=["block"], stateful=True, max_parallelism=STATE_PARTITIONS)
        .operator("total", total, stateful=True, max_parallelism=STATE_PARTITIONS)
        .sink("distances", given.sink("append", "distances"))
    )
    return app


def _timed(rows: DataFrame) -> DataFrame:
    """Add an event time, by which Spark completes iterations; from 0 on, all would be late at once."""
    time = F.timestamp_seconds(F.col("iteration") + 1)
    return rows.withColumn("time", time).withWatermark("time", LATENESS)


def _add(left: Column, right: Column) -> Column:
    return left + right


if __name__ == "__main__":
    build(read_input(__doc__)).run()
