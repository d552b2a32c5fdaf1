"""For how long rows hold the instances of Real-Time Mode: from what executors tell to the measure."""

from typing import Any

import pytest

from rheostat.engines.spark.events import read_events
from rheostat.engines.spark.observe.batch_window import BatchWindow
from rheostat.engines.spark.observe.batches import Batch, Ledger
from rheostat.engines.spark.observe.operator_measures import operators
from rheostat.engines.spark.protocol import ServiceTime
from rheostat.model.observation import OperatorMeasures
from rheostat.model.topology import Operator, Stream, Topology

CHAIN = Topology("chain", (Operator("in"), Operator("work")), (Stream("in", "work"),))


def stage(batch: int, number: int, parents: list[int], cpu: float) -> dict[str, Any]:
    each = [["0", cpu * 5e8, 0, 3000, partition, 20] for partition in (0, 1)]
    return {
        "event": "stage", "id": number, "parents": parents, "query": "q", "batch": batch, "tasks": 2,
        "failed": False, "cpu_ns": cpu * 1e9, "run_ms": 6000, "wait_ms": 0, "python_ms": 0, "each": each,
    }  # fmt: skip


def batches(*served: ServiceTime, cpu: float = 0.2) -> list[Batch]:
    """One of two stages with two tasks each."""
    ledger = Ledger(60.0, "in", realtime=True)
    ledger.add_service_times(served)
    progress = {
        "id": "q", "timestamp": "1970-01-01T00:01:02.000Z", "batchId": 0, "numInputRows": 40, "sources": [],
        "durationMs": {"triggerExecution": 3000, "addBatch": 3000},
        "observedMetrics": {"in": {"rows": 40}, "work": {"rows": 40}},
    }  # fmt: skip
    events = [stage(0, 5, [], 0.1), stage(0, 6, [5], cpu), {"event": "progress", "progress": progress}]
    ended, _ = ledger.read(read_events(events))
    return ended


def work(*served: ServiceTime, realtime: bool = True) -> OperatorMeasures:
    window = BatchWindow(None, tuple(batches(*served)), realtime, 10.0)
    return operators(CHAIN, CHAIN.names, window, {"in": (0,), "work": (1,)}, {}, {}, {})["work"]


def test_the_times_of_an_operators_tasks_add_up() -> None:
    assert work(ServiceTime(6, 0, 1.5), ServiceTime(6, 1, 0.5), ServiceTime(7, 0, 9.0)).busy_seconds == 2.0


@pytest.mark.parametrize(
    "served", [(), (ServiceTime(6, 0, 1.5),), (ServiceTime(5, 0, 1.5), ServiceTime(5, 1, 1.5))]
)
def test_a_task_that_does_not_tell_leaves_its_operator_unknown(served: tuple[ServiceTime, ...]) -> None:
    assert work(*served).busy_seconds is None


def test_what_samples_miss_is_at_least_the_cpu_that_the_tasks_used() -> None:
    assert work(ServiceTime(6, 0, -0.1), ServiceTime(6, 1, 0.05)).busy_seconds == pytest.approx(0.2)


def test_in_micro_batch_a_task_is_busy_for_as_long_as_it_runs() -> None:
    assert work(ServiceTime(6, 0, 1.5), ServiceTime(6, 1, 0.5), realtime=False).busy_seconds == 6.0


def test_times_of_tasks_whose_batch_never_ends_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rheostat.engines.spark.observe.batches.MOST_SERVICE_TIMES", 3)
    ledger = Ledger(60.0, realtime=True)
    for number in range(10):
        ledger.add_service_times([ServiceTime(number, 0, 1.0)])
    assert list(ledger._served) == [(7, 0), (8, 0), (9, 0)]
