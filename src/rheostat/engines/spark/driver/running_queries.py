"""The streaming queries that run in this driver, whichever of the script's sessions started them."""

from collections.abc import Iterator
from traceback import walk_tb
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery


def running_queries(spark: SparkSession) -> list[StreamingQuery]:
    """In the order in which they were started, which is that of their threads.

    `spark.streams.active` has those of one session only, and a script may open others.
    """
    session: Any = spark
    jvm: Any = spark.sparkContext._jvm
    wrapper = jvm.org.apache.spark.sql.execution.streaming.runtime.StreamingQueryWrapper
    active = session._jsparkSession.sharedState().activeStreamingQueries()
    executions = list(jvm.java.util.HashMap(active).values())  # a copy: queries end at any time
    executions.sort(key=lambda execution: int(execution.queryExecutionThread().getId()))
    return [StreamingQuery(wrapper(execution)) for execution in executions]


def queries_in(error: BaseException | None) -> Iterator[StreamingQuery]:
    """The queries that a script waited for when this was raised: those whose methods are in its traceback."""
    while error is not None:
        for frame, _ in walk_tb(error.__traceback__):
            if isinstance(query := frame.f_locals.get("self"), StreamingQuery):
                yield query
        error = error.__context__
