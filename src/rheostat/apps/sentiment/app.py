"""The sentiment of each message (P2's T2): tokenise -> features -> score.

Praise counts 1, blame -1; "very" before it makes it half as much again, "not" turns it round.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from rheostat.apps.inputs import Input, read_input
from rheostat.apps.text import BLAME, PRAISE, sentences, words_of
from rheostat.engines.spark.driver.application import Application

FEELINGS = dict.fromkeys(PRAISE, 1.0) | dict.fromkeys(BLAME, -1.0)
BEFORE = {"not": -1.0, "very": 1.5}


def tokenise(rows: DataFrame) -> DataFrame:
    """Split each message into words."""
    return rows.select("value", words_of("text").alias("words"))


def features(rows: DataFrame) -> DataFrame:
    """Weigh each word, depending on the word before it."""

    def weight(word: Column, place: Column) -> Column:
        return _value(word, FEELINGS, 0.0) * _value(F.get("words", place - 1), BEFORE, 1.0)

    return rows.select("value", F.transform("words", weight).alias("weights"))


def score(rows: DataFrame) -> DataFrame:
    """Add up the weights, and name the mood."""
    total = F.aggregate("weights", F.lit(0.0), lambda so_far, weight: so_far + weight)
    mood = F.when(total > 0, "content").when(total < 0, "discontent").otherwise("neutral")
    return rows.select("value", total.alias("score"), mood.alias("mood"))


def _value(word: Column, values: dict[str, float], otherwise: float) -> Column:
    """Return the value of a word, or the default."""
    words = {value: [word for word, its in values.items() if its == value] for value in set(values.values())}
    chosen = F.lit(otherwise)
    for value, names in words.items():
        chosen = F.when(word.isin(*names), value).otherwise(chosen)
    return chosen


def build(given: Input) -> Application:
    """The application, ready to run."""
    app = Application("sentiment", trigger_seconds=2)
    (
        given.read(app, "messages", sentences)
        .operator("tokenise", tokenise, max_parallelism=16)
        .operator("features", features, max_parallelism=16)
        .operator("score", score, max_parallelism=16)
        .sink("publish", given.sink())
    )
    return app


if __name__ == "__main__":
    build(read_input(__doc__)).run()
