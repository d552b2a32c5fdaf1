"""The queue before the first operator of a query: made-up batches and samples with exact answers."""

from dataclasses import replace

import pytest

from rheostat.engines.spark.observe.batch_window import BatchWindow
from rheostat.engines.spark.observe.batches import Batch
from rheostat.engines.spark.observe.queues import received, waiting

RATE, DUE = 100.0, 2.0
COUNTED = tuple((float(at), RATE * at) for at in range(41))  # what the source was offered


def batch(number: int, started: float, rows: float, seconds: float = 1.0, **more: float | None) -> Batch:
    backlog = more.get("backlog", 0.0)
    return Batch(number, started, started + seconds, rows, backlog, {}, (), {})


IN_TIME = tuple(batch(number, 2.0 * number, 200.0) for number in range(6))  # the last began at 10 s


def window(now: float, *batches: Batch, start: float = 2.0, running: float | None = None) -> BatchWindow:
    before = [batch for batch in batches if batch.finished <= start][-1:]
    inside = tuple(batch for batch in batches if start < batch.finished <= now)
    return BatchWindow(
        before[0] if before else None,
        inside,
        False,
        now,
        start,
        tuple((at, count) for at, count in COUNTED if at <= now),
        tuple(batch for batch in batches if batch.finished <= now),
        due_seconds=DUE,
        running_since=running,
    )


@pytest.mark.parametrize("now", [11.2, 11.7])
def test_rows_that_collect_for_the_next_trigger_do_not_wait(now: float) -> None:
    assert waiting(window(now, *IN_TIME)) == 0.0


def test_rows_wait_when_the_next_trigger_is_late() -> None:
    assert waiting(window(16.0, *IN_TIME)) == pytest.approx(600.0)  # all that came since 10 s
    assert waiting(window(16.0, *IN_TIME, running=12.0)) == pytest.approx(400.0)  # the rest was taken
    assert waiting(window(13.5, *IN_TIME, running=12.0)) == 0.0


def test_after_a_long_silence_the_first_rows_do_not_wait_yet() -> None:
    silent = ((0.0, 0.0), (29.0, 0.0), (30.0, 50.0))
    first = replace(window(30.0, batch(0, 20.0, 0.0)), offered=silent)
    assert waiting(replace(first, latest=(batch(0, 1.0, 0), batch(1, 30.0, 50.0)))) == 0.0


def test_what_a_reader_with_a_limit_leaves_waits_in_the_source() -> None:
    limited = batch(1, 4.0, 100.0, backlog=300.0)
    stands = window(5.5, batch(0, 0.0, 100.0, backlog=0.0), limited, start=3.0)
    assert waiting(stands) == 300.0
    runs = replace(stands, running_since=6.0, now=6.5, offered=COUNTED)
    assert waiting(runs) == pytest.approx(400.0)  # 200 came, 100 went


def test_a_source_that_does_not_tell_has_no_queue_that_is_known() -> None:
    mute = batch(1, 4.0, 100.0, backlog=None)
    assert waiting(replace(window(6.0, mute), offered=())) is None
    assert waiting(window(6.0, mute)) == 0.0  # it counts what it was offered, and a batch takes all
    assert waiting(BatchWindow(None, (), False, 6.0)) is None


@pytest.mark.parametrize("now", [10.6, 11.0, 11.5, 12.9])
def test_while_batches_are_in_time_as_many_arrived_as_were_done_wherever_a_window_ends(now: float) -> None:
    cut = window(now, *IN_TIME)
    assert received(cut) == sum(each.input_rows for each in cut.batches)


def test_where_rows_come_faster_than_they_are_done_more_arrive_than_are_done() -> None:
    growing = (
        batch(0, 0.0, 200.0, 1.0),
        batch(1, 2.0, 200.0, 4.0),
        batch(2, 6.0, 400.0, 8.0),
        batch(3, 14.0, 800.0, 16.0),
    )
    first = window(14.0, *growing, start=4.0, running=14.0)
    done = sum(each.input_rows for each in first.batches)
    assert done == pytest.approx(600.0)
    assert received(first) == pytest.approx(600.0 + 400.0)  # from 6 s to 10 s, two triggers ago
    second = window(30.0, *growing, start=14.0, running=30.0)
    done = sum(each.input_rows for each in second.batches)
    assert done == pytest.approx(800.0)
    assert received(second) == pytest.approx(800.0 + 1200.0 - 400.0)


def test_while_no_batch_ends_more_and_more_of_what_arrived_is_overdue() -> None:
    stuck = replace(
        window(20.0, *IN_TIME, running=12.0), batches=IN_TIME[-1:], before=IN_TIME[-2], stale=True
    )
    assert received(stuck) == pytest.approx(200.0 + RATE * (20.0 - 10.0 - 2 * DUE))


def test_in_real_time_mode_what_waits_is_what_the_last_batch_left() -> None:
    live = replace(
        window(12.0, batch(1, 2.0, 100.0, backlog=10.0), batch(2, 6.0, 100.0, backlog=50.0)), realtime=True
    )
    assert waiting(live) == 50.0
    assert received(live) == 140.0  # the first batch of all is not counted
