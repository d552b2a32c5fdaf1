"""The journal's bound: 1 MiB here, thousands of turns."""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from rheostat.control.guards import Guards
from rheostat.control.loop import Loop
from rheostat.control.turn import Turn
from rheostat.journal.store import Journal
from rheostat.model.errors import UserError
from rheostat.model.observation import Event
from tests.control.fakes import FakeClock, FakeEngine, OneMore, Sometimes

MIB = 2**20


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """In memory where that is possible: every turn is synced to disk, and this takes thousands."""
    shared = Path("/dev/shm") / f"rheostat-{os.getpid()}"
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path / "j.sqlite"
        return
    yield shared / "j.sqlite"
    for file in shared.iterdir():
        file.unlink()
    shared.rmdir()


def loop(every: int) -> Loop:
    return Loop(FakeEngine(clock := FakeClock(), takes=1.0), clock, Sometimes(every=every))


def size(path: Path) -> int:
    return sizes_of(str(path), f"{path}-wal")


def sizes_of(*names: str) -> int:
    """Plain names, because it is asked before each of many thousand statements."""
    total = 0
    for name in names:
        with suppress(FileNotFoundError):
            total += os.stat(name).st_size  # noqa: PTH116
    return total


def fill(path: Path, turns: Iterator[Turn], max_bytes: int = MIB) -> list[Turn]:
    """Write turns and look at the size before every statement, roll-ups included; the applied ones."""
    applied, largest = [], 0
    names = str(path), f"{path}-wal"

    def look(_: str) -> None:
        nonlocal largest
        largest = max(largest, sizes_of(*names))

    with Journal(path, max_bytes) as journal:
        journal._db.set_trace_callback(look)
        for turn in turns:
            journal.done(turn)
            if turn.outcome.status == "applied":
                applied.append(turn)
        look("")
    assert largest <= max_bytes
    return applied


def test_the_file_stays_within_its_bound_and_every_change_keeps_its_summary(path: Path) -> None:
    applied = fill(path, loop(every=100).run(until=60.0 * 6_000))
    with Journal.read(path) as journal:
        lines = journal.changes()
        assert [line.number for line in lines] == [turn.number for turn in applied]
        assert [line.change for line in lines[:2]] == ["split 1 -> 2", "split 2 -> 1"]
        assert journal.summary(1) is None
        assert journal.windows()[0].start == 0.0
        last = journal.last()
        assert last is not None and last.number == journal.totals().turns


def test_turns_that_show_the_effect_of_a_change_keep_their_summaries(path: Path) -> None:
    applied = fill(path, loop(every=100).run(until=60.0 * 3000))
    with Journal.read(path) as journal:
        first = applied[0].number
        assert journal.summary(first - 1) is None
        assert [line.number for line in journal.following(first, 9)] == [first + 1, first + 2, first + 3]
        assert journal.turn(first + 1) is None


def test_rolled_up_windows_keep_means_sums_and_extremes(path: Path) -> None:
    turns = list(loop(every=10**9).run(until=60.0 * 1500))
    observation = turns[100].observation
    late = replace(observation.application, lag_seconds=99.0, backlog=7e6)
    turns[100] = replace(turns[100], observation=replace(observation, application=late))
    fill(path, iter(turns))
    with Journal.read(path) as journal:
        windows = journal.windows()
        assert len(windows) > 10
        assert max(window.lag_max or 0 for window in windows) == 99.0
        assert max(window.backlog_max or 0 for window in windows) == 7e6
        assert {window.load for window in windows} == {1000.0}
        assert journal.totals().node_seconds == pytest.approx(2 * 60 * len(turns))
        assert journal.totals().money == 0


def test_money_is_added_up_over_turns_and_rolled_up_windows(path: Path) -> None:
    turns = list(loop(every=10**9).run(until=60.0 * 1500))
    for index, turn in enumerate(turns):
        nodes = tuple(replace(node, price_per_hour=0.5) for node in turn.observation.nodes)
        turns[index] = replace(turn, observation=replace(turn.observation, nodes=nodes))
    fill(path, iter(turns))
    with Journal.read(path) as journal:
        assert len(journal.windows()) > 10
        hours = journal.totals().node_seconds / 3600
        assert journal.totals().money == pytest.approx(0.5 * hours)


def test_missing_measures_do_not_become_zeros_when_rolled_up(path: Path) -> None:
    turns = list(loop(every=10**9).run(until=60.0 * 1500))
    for index, turn in enumerate(turns):
        measures = replace(turn.observation.application, lag_seconds=None, throughput=None)
        if index % 2:
            measures = replace(measures, throughput=500.0)
        turns[index] = replace(turn, observation=replace(turn.observation, application=measures))
    fill(path, iter(turns))
    with Journal.read(path) as journal:
        assert {window.lag_mean for window in journal.windows()} == {None}
        assert {window.throughput for window in journal.windows()} - {None} == {500.0}


def test_vetoes_go_before_changes_lose_their_summaries(path: Path) -> None:
    vetoing = Loop(
        FakeEngine(clock := FakeClock(), takes=0.0), clock, OneMore(), guards=Guards(cooldown_seconds=6000)
    )
    applied = fill(path, vetoing.run(until=60.0 * 5000))
    with Journal.read(path) as journal:
        assert [line.number for line in journal.changes()] == [turn.number for turn in applied]
        assert journal.turn(applied[-1].number) is not None


def test_changes_alone_that_exceed_the_bound_lose_the_oldest(path: Path) -> None:
    applied = fill(path, loop(every=1).run(until=60.0 * 6000))
    with Journal.read(path) as journal:
        kept = [line.number for line in journal.changes()]
        assert kept == [turn.number for turn in applied][-len(kept) :]
        assert 1000 < len(kept) < len(applied)
        assert journal.totals().turns == len(applied)
        assert journal.last() == applied[-1]


def test_events_are_bounded_too(path: Path) -> None:
    with Journal(path, MIB) as journal:
        for number in range(20_000):
            journal.note(Event(float(number), "lost", f"executor {number} {'x' * 80}"))
            assert number % 50 or size(path) <= MIB
        assert journal.events(last=1)[0].at == 19_999.0


def test_a_smaller_bound_shrinks_the_file(path: Path) -> None:
    turns = list(loop(every=50).run(until=60.0 * 1200))
    fill(path, iter(turns[:-1]), 8 * MIB)
    assert size(path) > 2 * MIB
    with Journal(path, MIB) as journal:
        journal.done(turns[-1])
    assert size(path) <= MIB


def test_a_turn_larger_than_the_bound_is_kept_alone(path: Path) -> None:
    turns = list(loop(every=50).run(until=60.0 * 60))
    huge = replace(turns[-1], memory={"text": "x" * MIB})
    with Journal(path, MIB) as journal:
        for turn in (*turns[:-1], huge):
            journal.done(turn)
        assert journal.last() == huge


def test_a_bound_that_is_too_small_for_anything_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="at least 1048576 bytes"):
        Journal(tmp_path / "j.sqlite", max_bytes=1000)
    assert list(tmp_path.iterdir()) == []
