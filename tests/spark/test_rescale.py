"""Stateful operators change their parallelism: the state afterwards is that of a run that never stopped."""

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rheostat.engines.spark.engine import SparkEngine
from rheostat.infrastructure.local import LocalProvider
from rheostat.model.configuration import NodeKind
from rheostat.model.decision import Status

from .support import application, observe_batches, plan

KIND = NodeKind(cores=2.0, slots=4, memory_mb=1024.0)
KEYS = 50


def check_totals(folder: Path) -> int:
    """Every key's last written total is what the rows 0..n-1 add up to: none lost, none doubled."""
    latest: dict[int, tuple[int, int, int]] = {}
    for file in sorted(folder.glob("*.json"), key=lambda path: int(path.stem)):
        for line in file.read_text().splitlines():
            row = json.loads(line)
            latest[row["key"]] = (row["n"], row["sum"], row["most"])
    rows = sum(n for n, _, _ in latest.values())
    assert rows == max(most for _, _, most in latest.values()) + 1
    for key, (n, total, _) in latest.items():
        expected = range(key, rows, KEYS)
        assert (n, total) == (len(expected), sum(expected)), key
    return rows


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rescaled")


@pytest.fixture(scope="module")
def totals(cluster: LocalProvider, place: Path) -> Iterator[SparkEngine]:
    """An application that the tests hand to each other."""
    start = {"in": 1, "key": 2, "total": 2}
    arguments = ("200", "microbatch", "count", str(place / "totals"))
    with application(cluster, place, "totals", *arguments, parallelism=start, kind=KIND) as engine:
        observe_batches(engine, 2)
        yield engine


@pytest.mark.parametrize("count", [4, 1])
def test_state_is_rewritten_for_more_and_for_fewer_instances(totals: SparkEngine, count: int) -> None:
    outcome = totals.apply(plan(totals, total=count))
    assert outcome.status is Status.APPLIED
    assert 0 < outcome.pause_seconds <= outcome.finished_at - outcome.started_at
    seen = observe_batches(totals, 2)
    assert seen.operators["total"].parallelism == count
    assert seen.application.state_rows is not None


def test_a_driver_killed_while_it_rewrites_state_resumes_as_it_was(totals: SparkEngine, place: Path) -> None:
    before = totals.configuration.parallelism["total"]
    offsets, commits = (place / "checkpoint" / log for log in ("offsets", "commits"))
    child = os.fork()
    if child == 0:  # kill the driver at the moment when the rewrite is begun but not committed
        try:
            until = time.monotonic() + 240
            while time.monotonic() < until:
                begun, done = (
                    max(int(f.name) for f in log.iterdir() if f.name.isdigit()) for log in (offsets, commits)
                )
                if begun > done and _partitions(offsets / str(begun)) == 3:
                    os.killpg(totals.monitor.link.pid, signal.SIGKILL)
                    os._exit(0)
        finally:
            os._exit(1)
    outcome = totals.apply(plan(totals, total=3))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "the rewrite was never seen"
    assert outcome.status is Status.FAILED
    seen = observe_batches(totals, 2)
    assert seen.operators["total"].parallelism == before
    assert any("starts again" in event.text for event in seen.events) or totals.monitor.recent
    again = totals.apply(plan(totals, total=3))
    assert again.status is Status.APPLIED, again.reason
    observe_batches(totals, 2)


def test_after_all_that_the_totals_are_those_of_a_run_that_never_stopped(
    totals: SparkEngine, place: Path
) -> None:
    totals.monitor.link.stop()
    assert check_totals(place / "totals") > 0


def _partitions(entry: Path) -> int:
    lines = entry.read_text().splitlines()
    return int(json.loads(lines[1])["conf"]["spark.sql.shuffle.partitions"]) if len(lines) > 1 else 0


@pytest.mark.parametrize("state", ["distinct"])
def test_a_deduplication_in_real_time_mode_is_rescaled(
    cluster: LocalProvider, tmp_path: Path, state: str
) -> None:
    start = {"in": 1, "key": 1, "total": 1}
    kind = NodeKind(cores=1.0, slots=4, memory_mb=1024.0)
    arguments = ("100", "realtime", state)
    with application(
        cluster, tmp_path, "totals", *arguments, parallelism=start, mode="realtime", kind=kind
    ) as engine:
        observe_batches(engine, 1)
        outcome = engine.apply(plan(engine, total=2))
        assert outcome.status is Status.APPLIED, outcome.reason
        seen = observe_batches(engine, 1)
        assert seen.operators["total"].parallelism == 2
        assert seen.application.state_rows == KEYS
        assert engine.monitor.rows["total"] == KEYS  # no key came through twice
