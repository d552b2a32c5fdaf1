"""An application's chains as plain DataFrames, without the stages and the engine around them."""

from collections.abc import Iterator

from pyspark.sql import DataFrame, SparkSession

from rheostat.engines.spark.application import Application


def chains(app: Application, spark: SparkSession) -> Iterator[tuple[str, DataFrame]]:
    """The last step of each chain, and the rows that come out of it."""
    for last in app.sinks:
        steps = [app.steps[last]]
        while steps[0].inputs:
            [before] = steps[0].inputs
            steps.insert(0, app.steps[before])
        source, *operators = steps
        assert source.load is not None
        rows = source.load(spark)
        for step in operators:
            assert step.transform is not None
            rows = step.transform(rows)
        yield last, rows
