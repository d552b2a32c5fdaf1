"""Sentences like those of short messages: few words are frequent, most are rare."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from rheostat.apps.draws import draw


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


STOP_WORDS = _words("""
    a an and are as at be but by for from has have i in is it my not of on or so that the this to very was we
    with you
""")
SUBJECTS = _words("""
    battery bread bridge camera car city coffee concert doctor driver engine film garden goal hotel keyboard
    lesson library market match meal museum music network party phone photo picture player price queue road
    room route school screen season sensor server service shop show song station storm story street summer
    team teacher ticket tower traffic train trip update village water weather week winter work
""")
PRAISE = _words("""
    amazing beautiful best bright calm charming clean clever comfortable delicious easy excellent fast fine
    fresh friendly good great happy helpful kind lovely nice perfect pleasant quick reliable smooth strong
    superb sweet tidy useful warm wonderful
""")
BLAME = _words("""
    annoying awful bad boring broken cold cruel dirty dull expensive faulty filthy harsh horrible late loud
    messy nasty noisy painful poor rude sad shaky slow sour terrible tired ugly unfair useless weak worst
    wrong
""")
FEELINGS = tuple(word for pair in zip(PRAISE, BLAME, strict=False) for word in pair)
SENTENCE = (STOP_WORDS, SUBJECTS, STOP_WORDS, FEELINGS, STOP_WORDS, SUBJECTS, STOP_WORDS, FEELINGS)


def sentences(rows: DataFrame) -> DataFrame:
    """Add a column `text`, which follows from `value`."""
    return rows.withColumn("text", F.concat_ws(" ", *(_drawn(kind, n) for n, kind in enumerate(SENTENCE))))


def words_of(text: str) -> Column:
    """Return the words of a column's text, in lower case."""
    return F.split(F.lower(text), "[^a-z]+")


def _drawn(words: Sequence[str], number: int) -> Column:
    """Choose a word; the first ones are the most frequent."""
    drawn = draw("value", number)
    return F.element_at(F.split(F.lit(" ".join(words)), " "), (drawn * drawn * len(words)).cast("int") + 1)
