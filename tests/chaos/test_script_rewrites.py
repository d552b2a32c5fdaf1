"""Whatever is killed while a script's state is rewritten: no row is lost or doubled, and it gets done."""

import contextlib
import os
import shutil
import signal
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import psutil
import pytest

from tests.spark import plain_checkpoints
from tests.spark.controllers import eventually
from tests.spark.file_sink import check_totals_in_files
from tests.spark.plain_checkpoints import RATE, is_being_rewritten, newest, partitions

from .arena import EXECUTOR, WORKER, StepController

OPTIONS = "--nodes 1:1 --rescale auto --changes-per-hour 0"  # two slots: two partitions are enough
ATTACKS = list(product(("executor", "worker", "driver", "controller"), ("stop", "rewrite", "restart")))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    plain_checkpoints.make(folder)
    return folder / "rocksdb"


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Iterator[StepController]:
    data = tmp_path / "data"
    shutil.copytree(made, data)
    controller = StepController(tmp_path, "plain_state", str(data), str(RATE), options=OPTIONS)
    try:
        yield controller
    finally:
        controller.clear()


@pytest.mark.long  # the short version of this is in tests/spark, and on a scripted cluster in tests/scenarios
@pytest.mark.parametrize(("fault", "step"), ATTACKS)
def test_a_rewrite_survives_what_is_killed_at_each_of_its_steps(
    fault: str, step: str, run: StepController, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    if (fault, step) == ("driver", "rewrite"):
        strike_the_rewriting_driver(run, data / "checkpoint")
    else:
        run.steps.arm(step)
        run.start()
        run.wait_for(run.steps.reached, f"the step {step}")
        strike(run, fault)
    run.wait_for(lambda: is_rewritten(data / "checkpoint"), f"a rewrite after the {fault} was killed")
    number = newest(data / "checkpoint", "commits")
    run.wait_for(lambda: newest(data / "checkpoint", "commits") > number + 1, "batches on the new state")
    assert run.end(signal.SIGTERM) == 143
    assert run.left() == []
    assert check_totals_in_files(data / "totals") > 0


def strike(run: StepController, fault: str) -> None:
    """Kill something while the step is held."""
    if fault == "controller":
        run.end(signal.SIGKILL)
        run.steps.release()
        run.start("--resume")
        return
    if fault == "driver":
        os.killpg(run.driver, signal.SIGKILL)
    else:
        eventually(lambda: killed(run, EXECUTOR if fault == "executor" else WORKER))
    run.steps.release()


def strike_the_rewriting_driver(run: StepController, checkpoint: Path) -> None:
    """Kill the new driver while it rewrites: where that step is held, the old driver has ended already."""
    run.start()
    eventually(lambda: is_being_rewritten(checkpoint, 2), "a rewrite", pause=0.01)
    os.killpg(run.driver, signal.SIGKILL)
    run.wait_for_event("driver", "restarting")


def killed(run: StepController, what: str) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess, IndexError):
        run.jvms(what)[0].kill()
        return True
    return False


def is_rewritten(checkpoint: Path) -> bool:
    """Whether the last batch is committed on fewer partitions; it may be the rewrite itself."""
    batch = newest(checkpoint, "commits")
    return batch == newest(checkpoint, "offsets") and partitions(checkpoint, batch) == 2
