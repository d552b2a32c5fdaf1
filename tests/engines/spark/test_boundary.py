"""Ending a query between two batches, with a scripted query: no trigger that has begun is interrupted."""

from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from pyspark.sql.streaming.query import StreamingQuery

from rheostat.engines.spark.driver import boundary

from .test_ending import FakeTime

BATCH_SECONDS = 30.0


@dataclass
class Query:
    """Waits for its next trigger, or has begun one that its status shows late, as its thread is starved."""

    time: FakeTime
    every: float
    began: bool
    shows_after: float = 0.0
    isActive: bool = True  # noqa: N815
    stopping_at: float = field(default=float("inf"))
    interrupted: bool = False

    @property
    def ends_at(self) -> float:
        """When its thread ends by itself."""
        return self.stopping_at + (BATCH_SECONDS if self.began else self.every)

    @property
    def status(self) -> dict[str, Any]:
        shows = self.began and self.stopping_at + self.shows_after <= self.time.at < self.ends_at
        return {"isTriggerActive": shows, "message": "Waiting for next trigger"}

    def _begin_no_other(self) -> None:
        self.stopping_at = self.time.at

    def awaitTermination(self, timeout: float) -> bool:  # noqa: N802
        self.time.at = min(self.time.at + timeout, max(self.time.at, self.ends_at))
        return self.time.at >= self.ends_at

    def stop(self) -> None:
        self.interrupted = self.began and self.time.at < self.ends_at


def stopped(monkeypatch: pytest.MonkeyPatch, every: float, began: bool, shows_after: float = 0.0) -> Query:
    """A query that was stopped, and told so when it looked as if it waited."""
    time = FakeTime()
    query = Query(time, every, began, shows_after)
    monkeypatch.setattr(boundary, "time", time)
    monkeypatch.setattr(boundary, "_begin_no_other", Query._begin_no_other)
    monkeypatch.setattr(boundary, "_has_tasks", lambda _query: False)  # its batch is still being planned
    boundary.stop_between_batches(cast(StreamingQuery, query), every)
    return query


@pytest.mark.parametrize("every", [0.0, 2.0, 60.0])
@pytest.mark.parametrize("shows_after", [0.0, 0.9])
def test_a_trigger_that_had_begun_before_the_stop_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, every: float, shows_after: float
) -> None:
    query = stopped(monkeypatch, every, began=True, shows_after=shows_after)
    assert not query.interrupted
    assert query.time.at == query.ends_at


def test_a_query_that_waits_for_a_near_trigger_ends_there_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    query = stopped(monkeypatch, every=2.0, began=False)
    assert query.time.at == query.ends_at


def test_a_query_that_waits_for_a_distant_trigger_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    query = stopped(monkeypatch, every=600.0, began=False)
    assert query.time.at <= query.stopping_at + boundary.STARVED_SECONDS
