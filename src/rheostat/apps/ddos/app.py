"""Attacks in the traffic of a data centre (P0's application): parse -> pairs -> assemble -> analyse.

The model of normal traffic comes from a batch job: see learn.py beside this file.
"""

from importlib.resources import files
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from rheostat.apps.ddos.model import Model, load_model
from rheostat.apps.ddos.periods import assemble, pairs, parse
from rheostat.apps.ddos.traffic import Traffic
from rheostat.apps.inputs import Input, read_input
from rheostat.engines.spark.driver.application import Application, Transform

MODEL = Path(str(files("rheostat.apps.ddos") / "model.json"))
STATE_PARTITIONS = 4


def analyse(model: Model) -> Transform:
    """Return every period with its score; those above the threshold are attacks."""

    def transform(rows: DataFrame) -> DataFrame:
        scored = rows.select("period", "busiest", model.score().alias("score"))
        return scored.withColumn("attack", F.col("score") > model.threshold)

    return transform


def build(given: Input) -> Application:
    """The application, ready to run."""
    app = Application("ddos", trigger_seconds=2)
    (
        given.read(app, "packets", Traffic(given.seed).packets)
        .operator("parse", parse, max_parallelism=16)
        .operator("pairs", pairs, keys=["source"], stateful=True, max_parallelism=STATE_PARTITIONS)
        .operator("assemble", assemble, stateful=True, max_parallelism=STATE_PARTITIONS)
        .operator(
            "analyse", analyse(load_model(Path(given.model) if given.model else MODEL)), max_parallelism=1
        )
        .sink("attacks", given.sink("append"))
    )
    return app


if __name__ == "__main__":
    build(read_input(__doc__)).run()
