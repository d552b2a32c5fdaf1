"""The queries that a plain PySpark script starts itself; the first is measured and scaled."""

from collections.abc import Callable, Mapping
from threading import Thread
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from rheostat.engines.spark.driver import stages
from rheostat.engines.spark.driver.boundary import stop_between_batches
from rheostat.engines.spark.driver.session import Session
from rheostat.engines.spark.driver.supervisor import describe, read_stages
from rheostat.engines.spark.protocol import QueryStatus


class Script:
    """The queries of a script."""

    def __init__(self, session: Session, note: Callable[[str, str], None]) -> None:
        self._session, self._note = session, note
        self._query: StreamingQuery | None = None
        self._stages: tuple[str, list[stages.Stage]] | None = None
        self._others_noted = False

    def find_query(self) -> StreamingQuery | None:
        """The first of the script's queries that still runs, or else the one that ran last."""
        if self._query is None or not self._query.isActive:
            active = self._active()
            self._query = active[0] if active else self._query
        return self._query

    def describe(self) -> tuple[QueryStatus, ...]:
        """The status of the query, for the controller."""
        query = self.find_query()
        self._note_others(query)
        return () if query is None else (describe("", query, self._read_stages()),)

    def set_parallelism(self, targets: Mapping[str, int]) -> None:
        """Change the script's own shuffles from the next batch on."""
        query = self.find_query()
        ranks = {stage.operator: stage.shuffle for stage in self._read_stages()}
        for name, count in targets.items():
            if query is not None and (rank := ranks.get(name)) is not None:
                self._session.set_shuffle(str(query.id), rank, count)

    def stop(self) -> None:
        """Stop its queries, each between two batches."""
        ending = [Thread(target=stop_between_batches, args=(query, 0.0)) for query in self._active()]
        for thread in ending:
            thread.start()
        for thread in ending:
            thread.join()

    def _read_stages(self) -> list[stages.Stage]:
        """The stages of a batch with rows; an empty batch does not show how many tasks its source has."""
        latest = read_stages(self._query, self._stages)
        if latest is not None and all(stage.tasks != 0 for stage in latest[1]):
            self._stages = latest
        return self._stages[1] if self._stages else []

    def _active(self) -> list[StreamingQuery]:
        """The running queries in the order in which they were started, which is that of their threads."""
        queries: list[Any] = self._session.spark.streams.active
        return sorted(queries, key=lambda q: int(q._jsq.streamingQuery().queryExecutionThread().getId()))

    def _note_others(self, query: StreamingQuery | None) -> None:
        """Note once that only one query is scaled, if there are more."""
        others = 0 if self._others_noted or query is None else len(self._active()) - 1
        if query is not None and others > 0:
            self._others_noted = True
            name = query.name or f"the first, {query.id}"
            self._note(
                "query", f"the script runs {others + 1} queries: {name} is scaled, others stay as they are"
            )
