"""Ending a query between two batches, with a scripted query: no trigger that has begun is interrupted."""

from typing import Any, cast

import pytest
from pyspark.sql.streaming.query import StreamingQuery

from rheostat.engines.spark.driver import boundary

from .test_ending import FakeTime


class Query:
    """Waits for its next trigger, or has begun one that its status does not show yet."""

    def __init__(self, began: bool) -> None:
        self.runs = began
        self.told_to_stop = self.interrupted = False
        self.isActive = True
        self.looks = 0

    @property
    def status(self) -> dict[str, Any]:
        self.looks += self.told_to_stop
        return {"isTriggerActive": self.runs and self.looks > 3, "message": "Waiting for next trigger"}

    def begin_no_other(self) -> None:
        self.told_to_stop = True

    def awaitTermination(self, _timeout: float) -> None:  # noqa: N802
        self.runs = False

    def stop(self) -> None:
        self.interrupted = self.runs


@pytest.mark.parametrize("began", [True, False])
def test_a_trigger_that_had_begun_before_the_stop_is_waited_for(
    began: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = Query(began)
    monkeypatch.setattr(boundary, "time", FakeTime())
    monkeypatch.setattr(boundary, "_begin_no_other", Query.begin_no_other)
    monkeypatch.setattr(boundary, "_has_tasks", lambda _query: False)  # its batch is still being planned
    boundary.stop_between_batches(cast(StreamingQuery, query), 0.0)
    assert query.told_to_stop and not query.interrupted
