"""How often each word came so far (P1's application): sentences -> split -> count -> publish."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from rheostat.apps.inputs import Input, read_input
from rheostat.apps.text import sentences, words_of
from rheostat.engines.spark.driver.application import Application


def split(rows: DataFrame) -> DataFrame:
    """A row per word."""
    return rows.select(F.explode(words_of("text")).alias("word"))


def count(rows: DataFrame) -> DataFrame:
    """The words so far: this is the state."""
    return rows.groupBy("word").count()


def build(given: Input) -> Application:
    """The application, ready to run."""
    app = Application("wordcount", trigger_seconds=2)
    (
        given.read(app, "sentences", sentences)
        .operator("split", split, max_parallelism=16)
        .operator("count", count, keys=["word"], stateful=True, max_parallelism=2)
        .sink("publish", given.sink())
    )
    return app


if __name__ == "__main__":
    build(read_input(__doc__)).run()
