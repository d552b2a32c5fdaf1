"""The end of a run: its batch may end as late as the boundary allows; what hangs is ended all the same."""

import os
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql.streaming.query import StreamingQuery

from rheostat.engines.spark.driver import boundary
from rheostat.engines.spark.ending import end_in_order
from rheostat.engines.spark.limits import LIMITS, Limits

from .scripted import driver_process


@dataclass
class FakeTime:
    """Passes only when somebody waits."""

    at: float = 1000.0

    def monotonic(self) -> float:
        return self.at

    def time(self) -> float:
        return self.at + 1.0  # between two triggers of two seconds

    def sleep(self, seconds: float) -> None:
        self.at += seconds


@dataclass
class Driver:
    """Ends its batch, and later its process, after so many seconds; one that hangs answers nothing."""

    time: FakeTime
    batch_seconds: float = 0.0
    spark_seconds: float = 0.0
    hangs: bool = False
    killed_alive: bool = False
    asked_at: float = field(default=float("inf"))

    @property
    def _batch_ends_at(self) -> float:
        return float("inf") if self.hangs else self.asked_at + self.batch_seconds

    @property
    def alive(self) -> bool:
        return self.time.at < self._batch_ends_at + self.spark_seconds

    def begin_stop(self) -> bool:
        if not self.alive:
            return False
        self.asked_at = self.time.at
        return True

    def has_stopped(self, seconds: float) -> bool:
        self.time.sleep(min(seconds, max(0.0, self._batch_ends_at - self.time.at)))
        return self.time.at >= self._batch_ends_at

    def is_silent(self, seconds: float) -> bool:
        self.time.sleep(seconds if self.hangs else 0.0)
        return self.hangs

    def kill(self) -> None:
        self.killed_alive = self.alive


def ended(driver: Driver) -> tuple[float, list[str]]:
    """How long its end took, and what was said meanwhile."""
    began, said = driver.time.at, list[str]()
    end_in_order(driver, LIMITS, said.append, driver.time.monotonic, driver.time.sleep)
    return driver.time.at - began, said


class EndlessQuery:
    """A query whose batch never ends."""

    isActive = True  # noqa: N815
    stopped_at = 0.0

    def __init__(self, clock: FakeTime) -> None:
        self.time = clock

    def awaitTermination(self, seconds: int) -> bool:  # noqa: N802
        self.time.sleep(seconds)
        return False

    def stop(self) -> None:
        self.stopped_at = self.time.at


def longest_wait_of_the_boundary(monkeypatch: pytest.MonkeyPatch, tasks_after: float) -> float:
    """How long the boundary lets a batch run that has its first task after so many seconds."""
    clock = FakeTime()
    began, query = clock.at, EndlessQuery(clock)
    monkeypatch.setattr(boundary, "time", clock)
    monkeypatch.setattr(boundary, "_is_in_a_pause", lambda *_: False)
    monkeypatch.setattr(boundary, "_has_tasks", lambda _: clock.at - began >= tasks_after)
    monkeypatch.setattr(boundary, "_begin_no_other", lambda _: None)
    boundary.stop_between_batches(cast(StreamingQuery, cast(Any, query)), 0.0)
    return query.stopped_at - began


@pytest.mark.parametrize("tasks_after", [0.0, 3.3, 119.5, 1000.0])
def test_a_batch_that_the_boundary_waits_for_is_not_killed(
    monkeypatch: pytest.MonkeyPatch, tasks_after: float
) -> None:
    longest = longest_wait_of_the_boundary(monkeypatch, tasks_after)
    assert longest > 60.0  # a batch may be long
    driver = Driver(FakeTime(), batch_seconds=longest, spark_seconds=LIMITS.spark_seconds - 1)
    seconds, said = ended(driver)
    assert not driver.killed_alive
    assert seconds == pytest.approx(longest + LIMITS.spark_seconds - 1, abs=0.1)
    assert said == ["waiting for the running batch to end, at most 145 s"]


def test_a_driver_between_two_batches_ends_at_once_and_silently() -> None:
    driver = Driver(FakeTime(), batch_seconds=0.2, spark_seconds=1.0)
    seconds, said = ended(driver)
    assert seconds == pytest.approx(1.2, abs=0.1)
    assert (driver.killed_alive, said) == (False, [])


def test_a_driver_that_is_already_dead_is_not_waited_for() -> None:
    driver = Driver(FakeTime(), asked_at=0.0)
    assert ended(driver) == (0.0, [])


def test_a_driver_that_answers_nothing_is_killed_long_before_a_batch_would_be() -> None:
    driver = Driver(FakeTime(), hangs=True)
    seconds, _ = ended(driver)
    assert driver.killed_alive
    assert seconds == pytest.approx(LIMITS.patience_seconds + LIMITS.silent_seconds)


@pytest.mark.parametrize(("batch", "spark"), [(1e6, 0.0), (0.0, 1e6), (149.0, 1e6)])
def test_a_driver_that_answers_but_never_ends_is_killed_in_bounded_time(batch: float, spark: float) -> None:
    driver = Driver(FakeTime(), batch_seconds=batch, spark_seconds=spark)
    seconds, _ = ended(driver)
    assert driver.killed_alive
    assert seconds <= LIMITS.batch_seconds + 2 * LIMITS.spark_seconds + 1


def test_a_real_process_commits_its_batch_before_it_ends(tmp_path: Path) -> None:
    said: list[str] = []
    with driver_process(tmp_path, batch_seconds=3.0) as link:
        link.stop(said.append, Limits(patience_seconds=0.1))
        assert link.process is not None and link.process.returncode == 0
        assert (tmp_path / "done").exists()
        assert [text.partition(",")[0] for text in said] == ["waiting for the running batch to end"]
        assert not link.spec.scratch.exists()


def test_a_real_process_that_is_frozen_is_ended_all_the_same(tmp_path: Path) -> None:
    with driver_process(tmp_path, batch_seconds=0.0) as link:
        os.kill(link.pid, signal.SIGSTOP)
        began = time.monotonic()
        link.stop(limits=Limits(patience_seconds=0.1, silent_seconds=0.3))
        assert time.monotonic() - began < LIMITS.spark_seconds
        assert not link.alive and not (tmp_path / "done").exists()
