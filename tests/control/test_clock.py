import time
from collections.abc import Iterator
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from rheostat.control.clock import SystemClock
from rheostat.control.loop import Loop
from rheostat.model.decision import Proposal
from rheostat.policies.base import Memory, Situation
from tests.control.fakes import FakeClock, FakeEngine, OneMore

PARIS = ZoneInfo("Europe/Paris")
HOUR, DAY = 3_600.0, 86_400.0


@pytest.fixture
def in_paris(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Paris")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("in_paris")
def test_local_time_counts_from_mondays_midnight_where_the_machine_is() -> None:
    tuesday = datetime(2026, 3, 3, 8, 30, tzinfo=PARIS).timestamp()
    assert SystemClock(tuesday).local_time(0.0) == DAY + 8.5 * HOUR
    assert SystemClock(tuesday).local_time(90.25) == DAY + 8.5 * HOUR + 90.25


@pytest.mark.usefixtures("in_paris")
def test_a_run_that_lasts_into_summer_time_still_follows_the_clock_on_the_wall() -> None:
    saturday = datetime(2026, 3, 28, 12, tzinfo=PARIS).timestamp()
    assert SystemClock(saturday).local_time(23 * HOUR) == 6 * DAY + 12 * HOUR  # the night had 23 hours


def test_the_loop_tells_a_policy_when_its_run_began() -> None:
    asked: list[Situation] = []

    class Listens(OneMore):
        def propose(self, situation: Situation, memory: Memory) -> tuple[Proposal, Memory]:
            asked.append(situation)
            return super().propose(situation, memory)

    clock = FakeClock(120.0, local_start=8 * HOUR)
    Loop(FakeEngine(clock), clock, Listens()).turn()
    assert (asked[0].now, asked[0].local_start) == (120.0, 8 * HOUR)


def test_sleep_ends_as_soon_as_something_rouses_it() -> None:
    ticks: list[float] = []
    clock = SystemClock(time.time(), lambda: ticks.append(clock.now()))
    clock.sleep(60.0, lambda: len(ticks) == 2)
    assert len(ticks) == 2
    assert clock.now() < 30.0
