"""Stateful operators change their parallelism: the state afterwards is that of a run that never stopped."""

import json
import os
import signal
import time
from pathlib import Path

import pytest

from rheostat.infrastructure.local import LocalProvider
from rheostat.model.configuration import NodeKind
from rheostat.model.decision import Status

from .support import application, observe_batches, plan

KIND = NodeKind(cores=2.0, slots=4, memory_mb=1024.0)
KEYS = 50


def test_totals_in_state_equal_an_uninterrupted_run(cluster: LocalProvider, tmp_path: Path) -> None:
    start = {"in": 1, "key": 2, "total": 2}
    arguments = ("200", "microbatch", "count", str(tmp_path / "totals"))
    with application(cluster, tmp_path, "totals", *arguments, parallelism=start, kind=KIND) as engine:
        observe_batches(engine, 3)
        for count in (4, 1, 3):
            outcome = engine.apply(plan(engine, total=count))
            assert outcome.status is Status.APPLIED
            assert 0 < outcome.pause_seconds < 60
            seen = observe_batches(engine, 2)
            assert seen.operators["total"].parallelism == count
            assert seen.application.state_rows is not None
    check_totals(tmp_path / "totals")


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


def test_a_driver_killed_while_it_rewrites_state_resumes_without_loss(
    cluster: LocalProvider, tmp_path: Path
) -> None:
    start = {"in": 1, "key": 2, "total": 2}
    arguments = ("200", "microbatch", "count", str(tmp_path / "totals"))
    with application(cluster, tmp_path, "totals", *arguments, parallelism=start, kind=KIND) as engine:
        observe_batches(engine, 3)
        offsets, commits = (tmp_path / "checkpoint" / log for log in ("offsets", "commits"))
        child = os.fork()
        if child == 0:  # kill the driver at the moment when the rewrite is begun but not committed
            until = time.monotonic() + 60
            while time.monotonic() < until:
                begun, done = (
                    max(int(f.name) for f in log.iterdir() if f.name.isdigit()) for log in (offsets, commits)
                )
                if begun > done and _partitions(offsets / str(begun)) == 4:
                    os.killpg(engine.monitor.link.pid, signal.SIGKILL)
                    os._exit(0)
            os._exit(1)
        outcome = engine.apply(plan(engine, total=4))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "the rewrite was never seen"
        assert outcome.status is Status.FAILED
        seen = observe_batches(engine, 2)
        assert seen.operators["total"].parallelism == 2
        assert any("starts again" in event.text for event in seen.events) or engine.monitor.recent
        again = engine.apply(plan(engine, total=4))
        assert again.status is Status.APPLIED, again.reason
        observe_batches(engine, 2)
    check_totals(tmp_path / "totals")


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
        observe_batches(engine, 2)
        outcome = engine.apply(plan(engine, total=2))
        assert outcome.status is Status.APPLIED, outcome.reason
        seen = observe_batches(engine, 2)
        assert seen.operators["total"].parallelism == 2
        assert seen.application.state_rows == KEYS
        assert engine.monitor.rows["total"] == KEYS  # no key came through twice
