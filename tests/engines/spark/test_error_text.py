"""Spark's long messages end with a whole word."""

from rheostat.engines.spark.driver.error_text import MOST_LETTERS, plain
from rheostat.engines.spark.events import QueryEnded
from rheostat.engines.spark.observe.batches import Ledger

LONG = "[STATE] " + "partition " * 60


def test_a_long_message_of_spark_is_cut_at_a_word() -> None:
    text = plain(RuntimeError(LONG))
    assert text.endswith(" partition ...")
    assert MOST_LETTERS - len("partition ") < len(text) <= MOST_LETTERS
    assert plain(RuntimeError("[STATE] short")) == "[STATE] short"


def test_why_a_query_ended_is_cut_at_a_word() -> None:
    _, [event] = Ledger(0.0).read([QueryEnded(LONG, 1_000.0)])
    assert event.text.startswith("query ended: [STATE] ") and event.text.endswith(" partition ...")
