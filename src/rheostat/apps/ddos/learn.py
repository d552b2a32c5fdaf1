"""The batch half of the lambda architecture: `python -m rheostat.apps.ddos.learn --out model.json`.

Learns what normal traffic looks like from traffic without attacks, then says how well the model finds the
attacks in traffic that it never saw.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rheostat.apps.ddos.model import Model, learn
from rheostat.apps.ddos.periods import assemble, pairs, parse
from rheostat.apps.ddos.traffic import BEGAN, PER_MINUTE, Traffic

LEAST_MINUTES, MOST_MINUTES = 60, 525_600  # an hour, a year


@dataclass(frozen=True)
class Quality:
    """Of the periods that a model calls attacks, how many are; of the attacks, how many it finds."""

    found: int
    mistaken: int
    missed: int

    @property
    def precision(self) -> float:
        return self.found / max(1, self.found + self.mistaken)

    @property
    def recall(self) -> float:
        return self.found / max(1, self.found + self.missed)

    def __str__(self) -> str:
        told = f"precision {self.precision:.3f}, recall {self.recall:.3f}"
        return f"{told} ({self.found} found, {self.mistaken} mistaken, {self.missed} missed)"


def periods(spark: SparkSession, traffic: Traffic, minutes: int) -> DataFrame:
    """The features of the first minutes of some traffic."""
    numbers = spark.range(int(minutes * PER_MINUTE)).withColumnRenamed("id", "value")
    return assemble(pairs(parse(traffic.packets(numbers))))


def judge(model: Model, periods: DataFrame, traffic: Traffic) -> Quality:
    """Compare what a model finds with what the traffic really holds."""
    minute = ((F.unix_timestamp("period") - BEGAN) / 60).cast("bigint").alias("minute")
    scored = periods.select(minute, (model.score() > model.threshold).alias("found"))
    sides = scored.select("found", traffic.attack().isNotNull().alias("attack"))
    counts = {
        (row["found"], row["attack"]): row["count"]
        for row in sides.groupBy("found", "attack").count().collect()
    }
    return Quality(counts.get((True, True), 0), counts.get((True, False), 0), counts.get((False, True), 0))


def main() -> None:
    """Learn, save, judge."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--minutes", type=int, default=10_080, help="of traffic to learn from; a week")
    parser.add_argument("--seed", type=int, default=1, help="of the traffic to learn from")
    parser.add_argument("--test-seed", type=int, default=2, help="of the traffic to try the model on")
    asked = parser.parse_args()
    if not LEAST_MINUTES <= asked.minutes <= MOST_MINUTES:
        parser.error(f"--minutes must be from {LEAST_MINUTES} to {MOST_MINUTES:,}, not {asked.minutes:,}")
    if not asked.out.parent.is_dir() or asked.out.is_dir():
        parser.error(f"--out {asked.out}: name a file in a folder that is there")
    local = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    builder = SparkSession.builder.appName("ddos: learn").config(map={**local, "spark.ui.enabled": "false"})
    spark = builder.getOrCreate()
    normal = Traffic(asked.seed, attacks=False)
    model = learn(periods(spark, normal, asked.minutes))
    model.save(asked.out)
    unseen = Traffic(asked.test_seed)
    print(f"seed {asked.test_seed}: {judge(model, periods(spark, unseen, asked.minutes), unseen)}")
    spark.stop()


if __name__ == "__main__":
    main()
