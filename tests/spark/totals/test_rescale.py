"""Stateful operators change their parallelism: the state afterwards is that of a run that never stopped.

The totals that the shared application wrote are checked when it ends.
"""

import json
import os
import signal
import time
from pathlib import Path

import pytest

from rheostat.model.decision import Status
from tests.spark.shared import Shared
from tests.spark.support import KEYS, observe_batches, plan


@pytest.mark.parametrize(("before", "count"), [(2, 4), (2, 1)])
def test_state_is_rewritten_for_more_and_for_fewer_instances(totals: Shared, before: int, count: int) -> None:
    engine = totals.at(total=before)
    outcome = engine.apply(plan(engine, total=count))
    assert outcome.status is Status.APPLIED, outcome.reason
    assert 0 < outcome.pause_seconds <= outcome.finished_at - outcome.started_at
    observed = observe_batches(engine, 2)
    assert observed.operators["total"].parallelism == count
    assert observed.application.state_rows == KEYS


def test_a_driver_killed_while_it_rewrites_state_resumes_as_it_was(totals: Shared) -> None:
    engine = totals.at(total=2)
    offsets, commits = (totals.folder / "checkpoint" / log for log in ("offsets", "commits"))
    child = os.fork()
    if child == 0:  # kill the driver at the moment when the rewrite is begun but not committed
        try:
            until = time.monotonic() + 240
            while time.monotonic() < until:
                begun, done = (
                    max(int(f.name) for f in log.iterdir() if f.name.isdigit()) for log in (offsets, commits)
                )
                if begun > done and _partitions(offsets / str(begun)) == 3:
                    os.killpg(engine.driver.pid, signal.SIGKILL)
                    os._exit(0)
        finally:
            os._exit(1)
    outcome = engine.apply(plan(engine, total=3))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "the rewrite was never seen"
    assert outcome.status is Status.FAILED
    observed = observe_batches(engine, 2)
    assert observed.operators["total"].parallelism == 2
    assert any("restarting in" in event.text for event in observed.events if event.kind == "driver")
    again = engine.apply(plan(engine, total=3))
    assert again.status is Status.APPLIED, again.reason
    assert observe_batches(engine, 2).operators["total"].parallelism == 3


def _partitions(entry: Path) -> int:
    lines = entry.read_text().splitlines()
    return int(json.loads(lines[1])["conf"]["spark.sql.shuffle.partitions"]) if len(lines) > 1 else 0
