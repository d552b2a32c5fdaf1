"""The Topology API: an application as named sources, operators and sinks, compiled to one streaming query.

    app = Application("wordcount")
    lines = app.source("lines", lambda spark: spark.readStream.format("rate").load())
    words = lines.operator("split", split, max_parallelism=8)
    counts = words.operator("count", lambda df: df.groupBy("word").count(), stateful=True)
    counts.sink("publish", lambda df: df.writeStream.format("console").outputMode("update"))
    app.run()

`rheostat run` keeps it as large as its load needs; `python app.py` runs the same thing at a fixed size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

from rheostat.model.errors import UserError
from rheostat.model.topology import Operator, Stream, Topology

DEFAULT_MAX_PARALLELISM = 64
DEFAULT_STATE_PARTITIONS = 4

Load = Callable[[SparkSession], DataFrame]
Transform = Callable[[DataFrame], DataFrame]
Write = Callable[[DataFrame], DataStreamWriter]


@dataclass(frozen=True)
class Step:
    """A source or an operator as the user declared it."""

    name: str
    transform: Transform | None  # None: the source
    keys: tuple[str, ...] = ()
    stateful: bool = False
    min_parallelism: int = 1
    max_parallelism: int = DEFAULT_MAX_PARALLELISM


@dataclass
class Application:
    """A chain of operators from one source to one sink. Nothing happens before `run`."""

    name: str
    trigger_seconds: float = 5.0
    steps: list[Step] = field(default_factory=list)
    arrived: Callable[[], float] | None = (
        None  # rows that the source was offered so far, where somebody knows
    )
    _load: Load | None = None
    _write: tuple[str, Write] | None = None

    def source(
        self, name: str, load: Load, *, parallelism: int = 1, arrived: Callable[[], float] | None = None
    ) -> Rows:
        """Read a stream; `parallelism` is its number of partitions, which only the source can change."""
        if self.steps:
            raise UserError(
                f"{self.name!r} has a source already: a second one needs an application of its own"
            )
        self._load, self.arrived = load, arrived
        return self._add(Step(name, None, (), False, parallelism, parallelism))

    def run(self) -> None:
        """Run until it is stopped: under `rheostat run` elastically, else at a fixed size."""
        from rheostat.engines.spark import host  # noqa: PLC0415 - a host imports this module

        host.run(self)

    def topology(self) -> Topology:
        """What it is, for policies: costs and selectivities are measured later."""
        operators = tuple(
            Operator(
                step.name,
                cost_seconds=0.0,
                min_parallelism=step.min_parallelism,
                max_parallelism=step.max_parallelism,
                stateful=step.stateful,
            )
            for step in self.steps
        )
        names = [step.name for step in self.steps]
        streams = tuple(Stream(a, b) for a, b in pairwise(names))
        return Topology(self.name, operators, streams)

    def rows(self, spark: SparkSession) -> DataFrame:
        """Build the query up to its sink; every step ends in an observe(), which counts rows and marks it."""
        if self._load is None or self._write is None:
            raise UserError(f"application {self.name!r} needs a source and a sink before it can run")
        rows = _marked(self._load(spark), self.steps[0].name)
        for step in self.steps[1:]:
            if step.transform is not None:
                rows = _marked(step.transform(rows), step.name)
        return rows

    def writer(self, rows: DataFrame) -> DataStreamWriter:
        """Give the rows to the sink."""
        if self._write is None:
            raise UserError(f"application {self.name!r} has no sink")
        return self._write[1](rows)

    def _add(self, step: Step) -> Rows:
        if any(step.name == other.name for other in self.steps):
            raise UserError(f"{self.name!r} has two operators called {step.name!r}: give each its own name")
        if not 1 <= step.min_parallelism <= step.max_parallelism:
            raise UserError(
                f"operator {step.name!r}: 1 <= min_parallelism <= max_parallelism must hold, "
                f"not {step.min_parallelism} and {step.max_parallelism}"
            )
        self.steps.append(step)
        return Rows(self, len(self.steps))


@dataclass(frozen=True)
class Rows:
    """What flows after a step; the next operator or the sink takes it."""

    application: Application
    position: int

    def operator(
        self,
        name: str,
        transform: Transform,
        *,
        keys: Sequence[str] = (),
        stateful: bool = False,
        min_parallelism: int | None = None,
        max_parallelism: int | None = None,
    ) -> Rows:
        """Add an operator: a function from DataFrame to DataFrame, in a stage of its own.

        Rows with equal `keys` meet in one instance. A stateful operator keeps the number of instances that it
        began with unless bounds are given: changing it means to stop and to rewrite its state.
        """
        self._check_free(name)
        low = min_parallelism or (max_parallelism or DEFAULT_STATE_PARTITIONS if stateful else 1)
        high = max_parallelism or (low if stateful else DEFAULT_MAX_PARALLELISM)
        return self.application._add(Step(name, transform, tuple(keys), stateful, low, high))

    def sink(self, name: str, write: Write) -> None:
        """Write the rows somewhere: `write` returns a DataStreamWriter that is not started yet."""
        self._check_free(name)
        self.application._write = (name, write)

    def _check_free(self, name: str) -> None:
        if self.position != len(self.application.steps) or self.application._write is not None:
            raise UserError(
                f"{name!r} would branch off: one query is a chain from source to sink; "
                "write to a topic and read it in another application"
            )


def _marked(rows: DataFrame, name: str) -> DataFrame:
    return rows.observe(name, F.count(F.lit(1)).alias("rows"))
