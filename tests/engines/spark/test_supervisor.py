"""Keeping a query running, with scripted queries: when one that died restarts, and when it is given up."""

from collections.abc import Iterator
from typing import Any, cast

import pytest
from pyspark.errors import StreamingQueryException

from rheostat.engines.spark.driver import supervisor
from rheostat.engines.spark.driver.session import Session
from rheostat.engines.spark.driver.supervisor import HEALTHY_SECONDS, START_ATTEMPTS, Supervisor
from rheostat.model.errors import RheostatError

from .test_ending import FakeTime


class Query:
    """Lives for some seconds, then dies or ends in order; a batch may have been finished before."""

    def __init__(self, clock: FakeTime, seconds: float = 0.0, why: str | None = "lost", batch: bool = False):
        self._clock, self._seconds, self._why = clock, seconds, why
        self.lastProgress = {"batchId": 0} if batch else None

    def awaitTermination(self) -> None:  # noqa: N802
        self._clock.sleep(self._seconds)
        if self._why is not None:
            raise StreamingQueryException(self._why)


class Stopping:
    """An event; whoever waits for it lets time pass."""

    def __init__(self, clock: FakeTime) -> None:
        self._clock, self.at, self.waits = clock, float("inf"), list[float]()

    def is_set(self) -> bool:
        return self._clock.at >= self.at

    def wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        self._clock.sleep(min(seconds, max(0.0, self.at - self._clock.at)))
        return self.is_set()


class Surroundings:
    """What a query lives in, without Spark."""

    def __init__(self) -> None:
        self.clock = FakeTime()
        self.stopping = Stopping(self.clock)
        self.session = cast(Session, None)
        self.over = False
        self.notes: list[str] = []

    def is_over(self) -> bool:
        return self.over

    def note(self, kind: str, text: str) -> None:
        self.notes.append(f"{kind}: {text}")


class Scripted(Supervisor):
    """Its starts succeed or fail one after the other, as the script says."""

    def __init__(self, around: Surroundings, *starts: Query | Exception, alone: bool = True) -> None:
        super().__init__(
            cast(Any, around), "in", "app", "checkpoint", {"processingTime": "1 seconds"}, lambda: None, None
        )
        self.alone = alone
        self._starts: Iterator[Query | Exception] = iter(starts)
        self.start()

    def start(self, once: bool = False) -> None:
        given = next(self._starts)
        if isinstance(given, Exception):
            raise given
        self.query = cast(Any, given)


@pytest.fixture
def around(monkeypatch: pytest.MonkeyPatch) -> Surroundings:
    made = Surroundings()
    monkeypatch.setattr(supervisor, "time", made.clock)
    monkeypatch.setattr(supervisor, "Checkpoint", lambda _spark, location: location)

    class Bare:
        spark = None

    made.session = cast(Session, Bare())
    return made


def ending(around: Surroundings) -> Query:
    return Query(around.clock, why=None)


def test_a_query_that_died_is_restarted_after_a_longer_wait_each_time(around: Surroundings) -> None:
    dying = [Query(around.clock, batch=True) for _ in range(8)]
    Scripted(around, *dying, ending(around)).supervise()
    assert around.stopping.waits == [1, 2, 4, 8, 16, 32, 60, 60]
    assert around.notes[1] == "query: died: lost; restarting in 2 s"


def test_a_query_that_ran_long_resets_the_back_off(around: Surroundings) -> None:
    short, long = (Query(around.clock, seconds, batch=True) for seconds in (1.0, HEALTHY_SECONDS + 1))
    Scripted(around, short, short, long, short, ending(around)).supervise()
    assert around.stopping.waits == [1, 2, 1, 2]


def test_a_start_that_fails_is_retried_after_a_longer_wait(around: Surroundings) -> None:
    refused = ValueError("the broker is away")
    Scripted(around, Query(around.clock, batch=True), refused, refused, ending(around)).supervise()
    assert around.stopping.waits == [1, 2, 4]
    assert "the broker is away" in around.notes[1]


def test_a_sole_query_that_never_finished_a_batch_is_given_up(around: Surroundings) -> None:
    dying = [Query(around.clock) for _ in range(START_ATTEMPTS)]
    with pytest.raises(RheostatError, match="the query failed to start: lost"):
        Scripted(around, *dying).supervise()
    assert len(around.notes) == START_ATTEMPTS - 1


@pytest.mark.parametrize(("alone", "batch"), [(False, False), (True, True)])
def test_a_query_among_several_or_one_that_worked_is_never_given_up(
    around: Surroundings, alone: bool, batch: bool
) -> None:
    dying = [Query(around.clock, batch=batch and not number) for number in range(2 * START_ATTEMPTS)]
    Scripted(around, *dying, ending(around), alone=alone).supervise()
    assert len(around.stopping.waits) == 2 * START_ATTEMPTS


def test_a_query_is_not_restarted_once_its_spark_has_stopped(around: Surroundings) -> None:
    around.over = True
    with pytest.raises(RheostatError, match="Spark stopped: lost"):
        Scripted(around, Query(around.clock, batch=True)).supervise()
    assert not around.stopping.waits


def test_a_query_that_is_replaced_is_not_mistaken_for_a_dead_one(around: Surroundings) -> None:
    class Replaced(Query):
        def awaitTermination(self) -> None:  # noqa: N802
            supervised.query = cast(Any, ending(around))  # the state was rewritten meanwhile
            super().awaitTermination()

    supervised = Scripted(around, Replaced(around.clock))
    supervised.supervise()
    assert (around.notes, around.stopping.waits) == ([], [])


def test_an_end_during_the_back_off_starts_nothing(around: Surroundings) -> None:
    around.stopping.at = around.clock.at + 10.5
    dying = [Query(around.clock, batch=True) for _ in range(4)]
    supervised = Scripted(around, *dying)
    supervised.supervise()
    assert supervised.query is cast(Any, dying[3])
    assert around.stopping.waits == [1, 2, 4, 8]
