"""How long rows hold an instance in Real-Time Mode, where each task runs as long as its batch."""

from pathlib import Path

import pytest

from rheostat.model.configuration import NodeKind
from rheostat.services.local_cluster import LocalCluster
from tests.spark.support import application, observe_batches

RATE, SECONDS = 100, 0.005  # per row; a busy machine wakes a thread up to 2 ms late
LOOK_SECONDS = 0.1  # between two looks of the sampler; it aims at half of that, and a busy machine delays it
KIND = NodeKind(cores=1.5, slots=4, memory_mb=1024.0)


def test_rows_hold_an_operator_that_waits_and_not_one_that_gets_none(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    single = {"in": 1, "wait": 1, "burn": 1, "idle": 1}
    with application(
        cluster, tmp_path, "waiting", str(RATE), str(SECONDS), parallelism=single, mode="realtime", kind=KIND
    ) as engine:
        observe_batches(engine, 3)
        observed = observe_batches(engine, 3)
    busy = {name: (item.busy_seconds or 0.0) / observed.seconds for name, item in observed.operators.items()}
    cpu = {name: (item.cpu_seconds or 0.0) / observed.seconds for name, item in observed.operators.items()}
    held = (observed.operators["wait"].processed or 0.0) * SECONDS / observed.seconds
    deviation = (held * (1 - held) * LOOK_SECONDS / observed.seconds) ** 0.5
    assert held - 4 * deviation < busy["wait"] < 0.9
    assert cpu["wait"] < 0.2 * held
    assert cpu["burn"] > 0.1
    assert busy["burn"] == pytest.approx(cpu["burn"], abs=0.1)
    assert busy["idle"] < 0.1
