"""What a minute of traffic looks like, in batches and in a stream alike: parse -> pairs -> assemble."""

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

PERIOD, LATENESS = "1 minute", "1 minute"
LINE = r"^(\S+) (\S+) > (\S+) len (\d+)$"
TINY = 40  # bytes of payload
FEATURES = ("packets", "bytes", "pairs", "destinations", "per_pair", "tiny", "gap", "unsteady")


def parse(rows: DataFrame) -> DataFrame:
    """Return the fields of each line; lines that are not packets are dropped."""
    fields_of_line = [F.regexp_extract("line", LINE, n) for n in range(1, 5)]
    fields = rows.select(
        *(
            field.alias(name)
            for field, name in zip(fields_of_line, ("at", "source", "destination", "payload"), strict=True)
        )
    )
    return fields.where("at != ''").selectExpr(
        "timestamp_micros(cast(cast(at as decimal(20,6)) * 1000000 as bigint)) as at",
        "source",
        "destination",
        "cast(payload as int) as payload",
    )


def pairs(rows: DataFrame) -> DataFrame:
    """Return packets, bytes and gaps per period, source and destination."""
    period = F.window("at", PERIOD).alias("period")
    grouped = rows.withWatermark("at", LATENESS).groupBy(period, "source", "destination")
    times = F.array_sort(F.collect_list(F.col("at").cast("double")))
    gathered = grouped.agg(
        F.count("*").alias("packets"),
        F.sum("payload").alias("bytes"),
        F.sum(F.when(F.col("payload") < TINY, 1).otherwise(0)).alias("tiny"),
        times.alias("times"),
    )
    gaps = F.zip_with(F.slice("times", 2, 1_000_000), "times", lambda late, early: late - early)
    gapped = gathered.withColumn("gaps", F.filter(gaps, lambda gap: gap.isNotNull()))
    return gapped.select(
        "period",
        "source",
        "destination",
        "packets",
        "bytes",
        "tiny",
        _sum("gaps", lambda gap: gap).alias("gap"),
        _sum("gaps", lambda gap: gap * gap).alias("gap_squared"),
    )


def assemble(rows: DataFrame) -> DataFrame:
    """Return a row per period: its features, and the busiest pair."""
    pair = F.concat_ws(" > ", "source", "destination")
    whole = rows.groupBy("period").agg(
        F.sum("packets").alias("packets"),
        F.sum("bytes").alias("bytes"),
        F.count("*").alias("pairs"),
        F.size(F.collect_set("destination")).alias("destinations"),
        F.max("packets").alias("per_pair"),
        F.sum("tiny").alias("tiny"),
        F.sum("gap").alias("gap"),
        F.sum("gap_squared").alias("gap_squared"),
        F.max_by(pair, "packets").alias("busiest"),
    )
    gaps = F.greatest(F.col("packets") - F.col("pairs"), F.lit(1))
    mean = F.col("gap") / gaps
    described = whole.select(
        F.col("period.start").alias("period"),
        "busiest",
        F.log1p("packets").alias("packets"),
        F.log1p("bytes").alias("bytes"),
        F.log1p("pairs").alias("pairs"),
        F.log1p("destinations").alias("destinations"),
        F.log1p("per_pair").alias("per_pair"),
        F.log1p("tiny").alias("tiny"),
        F.log1p(mean).alias("gap"),
        F.log1p(F.col("gap_squared") / gaps / (mean * mean + 1e-9)).alias("unsteady"),
    )
    return described.select("period", "busiest", F.array(*FEATURES).alias("features"))


def _sum(array: str, of: Callable[[Column], Column]) -> Column:
    return F.aggregate(array, F.lit(0.0), lambda so_far, element: so_far + of(element))
