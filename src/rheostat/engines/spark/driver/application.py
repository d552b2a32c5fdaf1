"""The Topology API: an application as named sources, operators and sinks, compiled to one streaming query.

    app = Application("wordcount")
    lines = app.source("lines", lambda spark: spark.readStream.format("rate").load())
    words = lines.operator("split", split, max_parallelism=8)
    counts = words.operator("count", lambda df: df.groupBy("word").count(), stateful=True)
    counts.sink("publish", lambda df: df.writeStream.format("console").outputMode("update"))
    app.run()

`rheostat run` scales it with its load; `python app.py` runs the same application at a fixed size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from rheostat.model.errors import UserError

DEFAULT_MAX_PARALLELISM = 64
DEFAULT_STATE_PARTITIONS = 4

Load = Callable[[SparkSession], DataFrame]
Transform = Callable[[DataFrame], DataFrame]
Write = Callable[[DataFrame], DataStreamWriter]


@dataclass(frozen=True)
class Step:
    """A source or an operator, as declared by the user."""

    name: str
    inputs: Mapping[str, str | None] = field(
        default_factory=dict
    )  # upstream steps, and the condition on their rows
    load: Load | None = None  # of a source
    transform: Transform | None = None  # of an operator
    keys: tuple[str, ...] = ()
    stateful: bool = False
    min_parallelism: int = 1
    max_parallelism: int = DEFAULT_MAX_PARALLELISM
    arrived: Callable[[], float] | None = None  # returns the rows that a source was offered so far, if known


@dataclass
class Application:
    """A graph of operators from sources to sinks. Nothing happens before `run`.

    A chain becomes one streaming query. Where rows fan out or in, the graph is cut into several queries,
    connected by Kafka topics, so that every operator keeps its own parallelism and queue.
    """

    name: str
    trigger_seconds: float = 5.0
    link_partitions: int | None = None  # of a topic between two queries; None: the mode's default
    steps: dict[str, Step] = field(default_factory=dict)
    sinks: dict[str, tuple[str, Write]] = field(default_factory=dict)  # step -> name and writer of its sink

    def source(
        self, name: str, load: Load, *, parallelism: int = 1, arrived: Callable[[], float] | None = None
    ) -> Rows:
        """Read a stream; `parallelism` is its number of partitions, which only the source can change."""
        return self._add(
            Step(name, load=load, min_parallelism=parallelism, max_parallelism=parallelism, arrived=arrived)
        )

    def run(self) -> None:
        """Run until stopped: scaled under `rheostat run`, otherwise at a fixed size."""
        from rheostat.engines.spark.driver import runner  # noqa: PLC0415 - the runner imports this module

        runner.run(self)

    def check(self) -> None:
        """Refuse a graph with unread rows, or without sources or sinks."""
        if not self.steps or not self.sinks:
            raise UserError(f"application {self.name!r} needs a source and a sink before it can run")
        read = {upstream for step in self.steps.values() for upstream in step.inputs}
        for name in self.steps:
            if name not in read and name not in self.sinks:
                raise UserError(f"nothing reads the rows of {name!r}: give it a sink, or leave it out")
            if name in read and name in self.sinks:
                raise UserError(
                    f"{name!r} has both a sink and an operator behind it: put an operator before the sink"
                )

    def _add(self, step: Step) -> Rows:
        if step.name in self.steps:
            raise UserError(f"{self.name!r} has two operators called {step.name!r}: give each its own name")
        if not 1 <= step.min_parallelism <= step.max_parallelism:
            raise UserError(
                f"operator {step.name!r}: 1 <= min_parallelism <= max_parallelism must hold, "
                f"not {step.min_parallelism} and {step.max_parallelism}"
            )
        self.steps[step.name] = step
        return Rows(self, {step.name: None})


@dataclass(frozen=True)
class Rows:
    """The rows of one step or of several; any number of operators can read them."""

    application: Application
    after: Mapping[str, str | None]  # steps, and the condition on their rows; None: all rows

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
        """Add an operator: a function from DataFrame to DataFrame, in its own stage.

        Rows with equal `keys` go to the same instance. A stateful operator keeps its initial number of
        instances unless bounds are given: changing it means stopping and rewriting its state.
        """
        low = min_parallelism or (max_parallelism or DEFAULT_STATE_PARTITIONS if stateful else 1)
        high = max_parallelism or (low if stateful else DEFAULT_MAX_PARALLELISM)
        return self.application._add(
            Step(name, self.after, None, transform, tuple(keys), stateful, low, high)
        )

    def where(self, condition: str) -> Rows:
        """Select the rows that meet an SQL condition."""
        both = {name: f"({old}) and ({condition})" if old else condition for name, old in self.after.items()}
        return Rows(self.application, both)

    def merge(self, *others: Rows) -> Rows:
        """These rows and others, for one operator that reads them all; their columns must be the same."""
        after = dict(self.after)
        for other in others:
            if twice := set(after) & set(other.after):
                raise UserError(f"merge: the rows of {min(twice)!r} can be merged only once")
            after |= other.after
        return Rows(self.application, after)

    def sink(self, name: str, write: Write) -> None:
        """Write the rows somewhere: `write` returns a DataStreamWriter that has not been started."""
        [step, *others], sinks = self.after, self.application.sinks
        if others or self.after[step]:
            raise UserError(
                f"sink {name!r} must take all rows of a single operator: put an operator before it"
            )
        if step in sinks:
            raise UserError(f"{step!r} has a sink already: put an operator before a second one")
        sinks[step] = (name, write)
