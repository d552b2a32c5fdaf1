"""An application's operators as plain DataFrames, without the stages and the engine around them."""

from collections import Counter
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rheostat.engines.spark.driver.application import Application, Step


def frames(app: Application, spark: SparkSession) -> dict[str, DataFrame]:
    """The rows that come out of each step; those of a batch that several take are made once."""
    readers = Counter(upstream for step in app.steps.values() for upstream in step.inputs)
    result: dict[str, DataFrame] = {}
    for name, step in app.steps.items():  # inputs come before their operators
        # As the engine does: without it Spark leaves out what the next operator does not look at.
        rows = _rows(step, result, spark).observe(name, F.count(F.lit(1)).alias("rows"))
        result[name] = rows.persist() if readers[name] > 1 and not rows.isStreaming else rows
    return result


def last_frames(app: Application, spark: SparkSession) -> dict[str, DataFrame]:
    """The last steps, and the rows that come out of them."""
    made = frames(app, spark)
    return {last: made[last] for last in app.sinks}


def _rows(step: Step, result: dict[str, DataFrame], spark: SparkSession) -> DataFrame:
    if step.load is not None:
        return step.load(spark)
    assert step.transform is not None
    taken = [result[name].where(F.expr(condition or "true")) for name, condition in step.inputs.items()]
    return step.transform(reduce(DataFrame.unionByName, taken))
