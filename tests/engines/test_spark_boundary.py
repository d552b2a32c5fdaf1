"""Ending a query between two batches, with a scripted query: no trigger that has begun is interrupted."""

from typing import Any, cast

import pytest
from pyspark.sql.streaming.query import StreamingQuery

from rheostat.engines.spark import boundary


class Query:
    """Waits for its trigger, which may come at any moment; a batch that runs ends by itself when waited for."""

    def __init__(self, trigger_comes: str) -> None:
        self.trigger_comes = trigger_comes
        self.last = self.active = self.interrupted = False
        self.isActive = True
        self.looks = 0

    @property
    def status(self) -> dict[str, Any]:
        self.looks += 1
        if self.trigger_comes == "just before" and self.last and self.looks > self._told_at + 3:
            self.active = True  # it had looked whether it may begin, and now shows that it did
        return {"isTriggerActive": self.active, "message": "Waiting for next trigger"}

    def begin_no_other(self) -> None:
        self.last, self._told_at = True, self.looks

    def awaitTermination(self, _timeout: float) -> None:  # noqa: N802
        self.active = False

    def stop(self) -> None:
        self.interrupted = self.active


@pytest.mark.parametrize("trigger_comes", ["just before", "later"])
def test_a_trigger_that_began_before_the_query_was_told_is_waited_for(
    trigger_comes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = Query(trigger_comes)
    monkeypatch.setattr(boundary, "_begin_no_other", Query.begin_no_other)
    monkeypatch.setattr(boundary, "_has_tasks", lambda _query: False)  # its batch is still being planned
    boundary.stop_between_batches(cast(StreamingQuery, query), 0.0)
    assert query.last and not query.interrupted
    assert query.active is False
