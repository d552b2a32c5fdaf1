"""Builds the queries of an application: each step ends in an observe(), which marks it in the plan."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from rheostat.engines.spark.driver import plan_checks
from rheostat.engines.spark.driver.application import Application
from rheostat.engines.spark.driver.query_topics import QueryTopics
from rheostat.engines.spark.query_graph import QueryChain, cut, received
from rheostat.model.errors import UserError


class Builder:
    """Builds the DataFrames and writers of an application's queries."""

    def __init__(self, app: Application, spark: SparkSession, topics: QueryTopics | None) -> None:
        self._app, self._spark, self._topics = app, spark, topics
        self.parts = parts(app)
        self._schemas: dict[str, StructType] = {}

    def rows(self, part: QueryChain) -> DataFrame:
        """The rows of a part before its sink or topic; an observe() counts and marks each step."""
        first = self._app.steps[part.name]
        if part.reads:
            rows = _marked(self._read(part), received(part.name))
        else:
            assert first.load is not None
            rows = first.load(self._spark)
        for name in part.steps:
            step = self._app.steps[name]
            if name != part.name and (condition := next(iter(step.inputs.values()))):
                rows = rows.where(condition)
            rows = _marked(rows if step.transform is None else step.transform(rows), name, self._routes(name))
        self._schemas[part.steps[-1]] = rows.schema
        return rows

    def writer(self, part: QueryChain) -> Any:
        """The writer of a part, not yet started."""
        rows: Any = self.rows(part)
        if not part.writes:
            return self._app.sinks[part.steps[-1]][1](rows)
        assert self._topics is not None
        stateful = plan_checks.stateful_nodes(rows._jdf.queryExecution().analyzed())
        routes = {
            self._topic(part.steps[-1], name): when for name, when in self._readers(part.steps[-1]).items()
        }
        return self._topics.write(rows, routes, "append" if "Join" in stateful else "update")

    def create_topics(self) -> None:
        """Create the topics that connect the queries."""
        if self._topics is not None:
            last = [part.steps[-1] for part in self.parts if part.writes]
            self._topics.create(
                {self._topic(step, reader) for step in last for reader in self._readers(step)}
            )

    def subscriptions(self) -> int:
        """How many tasks read the topics inside the graph: one per partition and reading part."""
        topics = self._topics
        return 0 if topics is None else topics.partitions * sum(len(part.reads) for part in self.parts)

    def _read(self, part: QueryChain) -> DataFrame:
        assert self._topics is not None
        schemas = [self._schema(name) for name in part.reads]
        shapes = {
            tuple((field.name, field.dataType.simpleString()) for field in schema.fields)
            for schema in schemas
        }
        if len(shapes) > 1:
            raise UserError(
                f"{part.name!r} merges {', '.join(part.reads)}, whose columns differ: select the same in each"
            )
        return self._topics.read([self._topic(name, part.name) for name in part.reads], schemas[0])

    def _topic(self, step: str, reader: str) -> str:
        assert self._topics is not None
        return self._topics.topic(step, reader if self._readers(step)[reader] else None)

    def _readers(self, step: str) -> dict[str, str | None]:
        """The steps that read the rows of a step, and their conditions."""
        others = self._app.steps.values()
        return {other.name: other.inputs[step] for other in others if step in other.inputs}

    def _routes(self, step: str) -> dict[str, str]:
        """The conditions of the readers that take only some of a step's rows."""
        return {name: when for name, when in self._readers(step).items() if when}

    def _schema(self, step: str) -> StructType:
        if step not in self._schemas:
            self.rows(next(part for part in self.parts if part.steps[-1] == step))
        return self._schemas[step]


def parts(app: Application) -> tuple[QueryChain, ...]:
    """The queries that an application becomes."""
    app.check()
    return cut({step.name: tuple(step.inputs) for step in app.steps.values()})


def _marked(rows: DataFrame, name: str, routes: Mapping[str, str] | None = None) -> DataFrame:
    """Count the rows, and the rows on each route."""
    taken = [F.count_if(F.expr(when)).alias(f"to {reader}") for reader, when in (routes or {}).items()]
    return rows.observe(name, F.count(F.lit(1)).alias("rows"), *taken)
