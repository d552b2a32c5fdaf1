"""What each user did so far, in state of its own. Argument: a folder with the clicks."""

import sys
from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

folder = sys.argv[1]
spark = (
    SparkSession.builder.appName("state-of-users")
    .config(
        "spark.sql.streaming.stateStore.providerClass",
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    )
    .getOrCreate()
)


class Visits(StatefulProcessor):
    def init(self, handle: StatefulProcessorHandle) -> None:
        self.seen = handle.getValueState("seen", "clicks INT, pages STRING")

    def handleInputRows(  # noqa: N802
        self, key: Any, rows: Iterator[Row], timer_values: Any
    ) -> Iterator[Row]:
        clicks, pages = self.seen.get() or (0, "")
        known = set(filter(None, pages.split(",")))
        for row in rows:
            clicks += 1
            known.add(row.page)
        pages = ",".join(sorted(known))
        self.seen.update((clicks, pages))
        yield Row(user=key[0], clicks=clicks, pages=pages)


clicks = (
    spark.readStream.schema("user INT, page STRING, at TIMESTAMP")
    .option("maxFilesPerTrigger", 1)
    .json(f"{folder}/clicks")
)
visits = clicks.groupBy("user").transformWithState(
    Visits(), "user INT, clicks INT, pages STRING", "Update", "None"
)


def keep(batch: DataFrame, number: int) -> None:
    batch.write.mode("overwrite").json(f"{folder}/out/{number}")


(
    visits.writeStream.queryName("visits")
    .outputMode("update")
    .foreachBatch(keep)
    .option("checkpointLocation", f"{folder}/checkpoint")
    .trigger(processingTime="1 second")
    .start()
    .awaitTermination()
)
