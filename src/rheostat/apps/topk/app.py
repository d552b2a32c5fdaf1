"""The most frequent words of a rolling window (P2's T1): filter -> count -> rank -> total.

Counts are emitted when their window is complete (append mode), so stateful operators can follow each other.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from rheostat.apps.inputs import Input, read_input
from rheostat.apps.text import STOP_WORDS, sentences, words_of
from rheostat.engines.spark.driver.application import Application

TOP = 10
WINDOW, SLIDE, LATENESS = "20 seconds", "5 seconds", "1 second"
RANKERS = 4


def drop_stop_words(rows: DataFrame) -> DataFrame:
    """Return a row per word, without stop words."""
    words = rows.select("timestamp", F.explode(words_of("text")).alias("word"))
    return words.where(~F.col("word").isin(*STOP_WORDS))


def count(rows: DataFrame) -> DataFrame:
    """Each word's count in each window."""
    window = F.window("timestamp", WINDOW, SLIDE).alias("window")
    return rows.withWatermark("timestamp", LATENESS).groupBy(window, "word").count()


def rank(rows: DataFrame) -> DataFrame:
    """Rank the words of each share."""
    share = F.pmod(F.xxhash64("word"), F.lit(RANKERS)).alias("share")
    return rows.groupBy("window", share).agg(best(F.struct("count", "word")).alias("best"))


def total(rows: DataFrame) -> DataFrame:
    """Merge the rankings of all shares."""
    ranked = rows.groupBy("window").agg(F.flatten(F.collect_list("best")).alias("best"))
    return ranked.select("window", top("best").alias("best"))


def best(entry: Column) -> Column:
    """The top entries of a group; equal counts are ranked by word."""
    return top(F.collect_list(entry))


def top(entries: str | Column) -> Column:
    """The first TOP of an array of counts and words."""
    return F.slice(F.reverse(F.array_sort(entries)), 1, TOP)


def build(given: Input) -> Application:
    """The application, ready to run."""
    app = Application("topk", trigger_seconds=2)
    (
        given.read(app, "messages", sentences)
        .operator("filter", drop_stop_words, max_parallelism=16)
        .operator("count", count, keys=["word"], stateful=True, max_parallelism=2)
        .operator("rank", rank, stateful=True, max_parallelism=2)
        .operator("total", total, stateful=True, max_parallelism=2)
        .sink("publish", given.sink("append"))
    )
    return app


if __name__ == "__main__":
    build(read_input(__doc__)).run()
