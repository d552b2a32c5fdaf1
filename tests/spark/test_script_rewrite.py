"""A plain script on a checkpoint that plain Spark made: its state is rewritten where Spark can do it."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from rheostat.model.decision import Status

from . import plain_checkpoints
from .controllers import controller, eventually
from .file_sink import check_totals_in_files, last_merged
from .plain_checkpoints import PARTITIONS, RATE, is_being_rewritten, newest, partitions

OPTIONS = "--nodes 1:1 --rescale auto"  # two slots: two partitions are enough


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The folder with the checkpoints, and what was seen when they were made."""
    folder = tmp_path_factory.mktemp("made")
    return folder, plain_checkpoints.make(folder)


def test_a_rewrite_after_an_unfinished_batch_is_refused_and_changes_nothing(
    made: tuple[Path, dict[str, Any]],
) -> None:
    unfinished = made[1]["unfinished"]
    assert unfinished["error"].startswith("[STATE_REPARTITION_INVALID_CHECKPOINT.LAST_BATCH_FAILED] ")
    assert unfinished["before"] == unfinished["after"]


def test_a_log_that_lacks_the_number_of_partitions_gets_it_and_no_state_is_lost(
    made: tuple[Path, dict[str, Any]],
) -> None:
    bare = made[1]["bare"]
    assert "LAST_BATCH_FAILED" in bare["error"]
    assert (bare["partitions"], bare["starts"]) == (PARTITIONS, PARTITIONS)
    assert check_totals_in_files(made[0] / "bare" / "totals") > 0


def test_too_many_partitions_are_rewritten_also_after_the_driver_was_killed_in_the_middle_of_it(
    made: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    folder = made[0] / "rocksdb"
    checkpoint = folder / "checkpoint"
    with controller(tmp_path, "plain_state", str(folder), str(RATE), options=OPTIONS) as run:
        run.start()
        eventually(lambda: is_being_rewritten(checkpoint, 2), "a rewrite", pause=0.01)
        os.killpg(run.driver, signal.SIGKILL)
        run.wait_for_event("driver", "restarting")
        failed = run.wait_for_turn(lambda turn: turn.plan.rewrite, since=0)
        assert failed.outcome.status is Status.FAILED

        turn = run.wait_for_turn(lambda turn: turn.plan.rewrite, since=failed.number)
        assert turn.outcome.status is Status.APPLIED, turn.outcome
        assert turn.plan.rewrite is not None
        assert (turn.plan.rewrite.before, turn.plan.rewrite.after) == (PARTITIONS, 2)
        assert turn.outcome.steps[0] == "script stopped"
        assert 0 < turn.outcome.pause_seconds < turn.outcome.finished_at - turn.outcome.started_at
        observed = run.wait_for_turns(2).observation
        assert observed.operators["2-aggregate"].partitions == 2
        rewritten = newest(checkpoint, "offsets")
        assert partitions(checkpoint, rewritten) == 2
        # The rewrite wrote no files; Spark merges the lists of all batches' files at every tenth.
        eventually(lambda: last_merged(folder / "totals") > rewritten, "the sink's log is merged")
        assert run.end(signal.SIGTERM) == 143
        assert run.left() == []
    assert check_totals_in_files(folder / "totals") > 0


def test_a_rewrite_that_a_killed_run_left_half_done_is_rolled_back_by_any_other_run(
    made: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    folder = made[0] / "cut"
    before = newest(folder / "checkpoint", "commits")
    with controller(tmp_path, "plain_state", str(folder), str(RATE), "forever", options="--nodes 1:1") as run:
        run.start()
        run.wait_for_event("state", "cut short earlier: rolled back")
        eventually(lambda: newest(folder / "checkpoint", "commits") > before + 1, "more batches")
        observed = run.wait_for_turns(2).observation  # of a session that is not ours
        assert observed.operators["2-aggregate"].processed
        assert run.end(signal.SIGTERM) == 143  # although the script starts its query again
        assert run.left() == []
    checkpoint = folder / "checkpoint"
    assert newest(checkpoint, "offsets") == newest(checkpoint, "commits")
    assert partitions(checkpoint, newest(checkpoint, "commits")) == PARTITIONS
    assert check_totals_in_files(folder / "totals") > 0


def test_a_checkpoint_of_the_default_provider_is_left_as_it_is_with_advice(
    made: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    folder = made[0] / "default"
    with controller(tmp_path, "plain_state", str(folder), str(RATE), options=OPTIONS) as run:
        run.start()
        said = run.wait_for_event("advice", "HDFSBackedStateStoreProvider, which Spark cannot rewrite")
        assert "with a new checkpointLocation" in said.text
        run.wait_for_turns(2)
        assert run.end(signal.SIGTERM) == 143
        started = [event for event in run.events() if event.kind == "query started"]
        assert (len(started), [turn for turn in run.turns() if turn.plan.changes]) == (1, [])
        assert "HDFSBackedStateStoreProvider" in run.out
    checkpoint = folder / "checkpoint"
    assert partitions(checkpoint, newest(checkpoint, "offsets")) == PARTITIONS
    assert check_totals_in_files(folder / "totals") > 0
