"""The batch half of the lambda architecture: `python -m rheostat.apps.ddos.learn --out model.json`.

Learns what normal traffic looks like from traffic without attacks, then measures how well the model detects
attacks in traffic that it has never seen.
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
    """How many periods a model calls attacks rightly, wrongly, or misses."""

    detected: int
    mistaken: int
    missed: int

    @property
    def precision(self) -> float:
        return self.detected / max(1, self.detected + self.mistaken)

    @property
    def recall(self) -> float:
        return self.detected / max(1, self.detected + self.missed)

    def __str__(self) -> str:
        rates = f"precision {self.precision:.3f}, recall {self.recall:.3f}"
        return f"{rates} ({self.detected} found, {self.mistaken} mistaken, {self.missed} missed)"


def periods(spark: SparkSession, traffic: Traffic, minutes: int) -> DataFrame:
    """Return the features of the first minutes of some traffic."""
    numbers = spark.range(int(minutes * PER_MINUTE)).withColumnRenamed("id", "value")
    return assemble(pairs(parse(traffic.packets(numbers))))


def judge(model: Model, periods: DataFrame, traffic: Traffic) -> Quality:
    """Compare what a model detects with the attacks in the traffic."""
    minute = ((F.unix_timestamp("period") - BEGAN) / 60).cast("bigint").alias("minute")
    scored = periods.select(minute, (model.score() > model.threshold).alias("detected"))
    sides = scored.select("detected", traffic.attack().isNotNull().alias("attack"))
    counts = {
        (row["detected"], row["attack"]): row["count"]
        for row in sides.groupBy("detected", "attack").count().collect()
    }
    return Quality(counts.get((True, True), 0), counts.get((True, False), 0), counts.get((False, True), 0))


def main() -> None:
    """Learn, save, judge."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument(
        "--minutes", type=int, default=10_080, help="minutes of traffic to learn from (default: a week)"
    )
    parser.add_argument("--seed", type=int, default=1, help="random seed of the traffic to learn from")
    parser.add_argument(
        "--test-seed", type=int, default=2, help="random seed of the traffic to test the model on"
    )
    options = parser.parse_args()
    if not LEAST_MINUTES <= options.minutes <= MOST_MINUTES:
        parser.error(f"--minutes must be from {LEAST_MINUTES} to {MOST_MINUTES:,}, not {options.minutes:,}")
    if not options.out.parent.is_dir() or options.out.is_dir():
        parser.error(f"--out {options.out}: name a file in an existing folder")
    local = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    builder = SparkSession.builder.appName("ddos: learn").config(map={**local, "spark.ui.enabled": "false"})
    spark = builder.getOrCreate()
    normal = Traffic(options.seed, attacks=False)
    model = learn(periods(spark, normal, options.minutes))
    model.save(options.out)
    unseen = Traffic(options.test_seed)
    print(f"seed {options.test_seed}: {judge(model, periods(spark, unseen, options.minutes), unseen)}")
    spark.stop()


if __name__ == "__main__":
    main()
