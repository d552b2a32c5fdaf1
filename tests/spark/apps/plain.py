"""A plain PySpark script, as users have them.

Arguments: a folder for all its files, rows per second, into how many parts it deals them (0: as they come).
"""

import json
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

FOLDER, RATE = Path(sys.argv[1]), int(sys.argv[2])
PARTITIONS = int(sys.argv[3]) if len(sys.argv) > 3 else 2
TRAP = FOLDER / "trap"  # while this exists, the query dies
KEYS = 50


def keep(batch: DataFrame, number: int) -> None:
    """One file per batch, by its number: a batch that runs twice writes the same file twice."""
    if TRAP.exists():
        raise ValueError("fell into the trap")
    item = batch.repartition(1)  # the script's own business, whatever the query's parallelism is
    assert item.rdd.getNumPartitions() == 1
    lines = [json.dumps(row.asDict()) for row in item.collect()]
    (FOLDER / "totals" / f"{number}.json").write_text("\n".join(lines))


(FOLDER / "totals").mkdir(parents=True, exist_ok=True)
spark = SparkSession.builder.appName("plain").config("spark.sql.shuffle.partitions", "3").getOrCreate()
rows = spark.readStream.format("rate").option("rowsPerSecond", RATE).option("numPartitions", 1).load()
sums = (F.count("*").alias("n"), F.sum("value").alias("sum"), F.max("value").alias("most"))
parts = rows.repartition(PARTITIONS) if PARTITIONS else rows
totals = parts.groupBy((F.col("value") % KEYS).alias("key")).agg(*sums)
query = (
    totals.writeStream.outputMode("update")
    .foreachBatch(keep)
    .queryName("totals")
    .option("checkpointLocation", str(FOLDER / "checkpoint"))
    .trigger(processingTime="2 seconds")
    .start()
)
query.awaitTermination()
