"""A graph of two queries as its driver reports it, without Spark: one has rows while the other is silent."""

from datetime import UTC, datetime
from typing import Any, cast

import pytest

from rheostat.engines.spark.events import read_events
from rheostat.engines.spark.observe.monitor import RECENT, Monitor
from rheostat.engines.spark.observe.query_window import COLD_BATCHES
from rheostat.engines.spark.protocol import (
    Channel,
    Executor,
    QueryStage,
    QueryStatus,
    Report,
    RunningBatch,
    Vitals,
)
from rheostat.engines.spark.query_graph import received
from rheostat.model.configuration import NodeKind
from rheostat.model.observation import Observation
from rheostat.model.topology import Operator, Stream, Topology
from rheostat.providers.standalone import StandaloneProvider

KIND = NodeKind(cores=1.0, slots=2)
PAIR = Topology("pair", (Operator("in"), Operator("left")), (Stream("in", "left"),))


class Driver:
    """Answers as the driver process does, with what the test put in."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.busy: set[str] = set()
        self.running: dict[str, RunningBatch] = {}
        self.vitals: Vitals | None = None
        self.arrived: dict[str, list[tuple[float, float]]] = {"in": [], "left": []}

    def ask(self, _request: Any) -> Report:
        events, self.events = self.events, []
        queries = tuple(
            QueryStatus(
                name,
                id=name,
                run=name,
                busy=name in self.busy,
                stages=(QueryStage(name),),
                arrived=tuple((at * 1000, rows) for at, rows in arrived),
                running=self.running.get(name),
            )
            for name, arrived in self.arrived.items()
        )
        self.arrived = {"in": [], "left": []}
        return Report(read_events(events), (Executor("0", "h", 2, vitals=self.vitals),), queries)

    def ran(self, query: str, number: int, at: float, rows: int, seconds: float = 1.0) -> None:
        each = [["0", int(rows * 4e6), rows, rows * 4, 0, None]]  # 4 ms of CPU a row
        stage = {"event": "stage", "id": number, "parents": [], "query": query, "batch": number, "tasks": 1,
                 "failed": False, "cpu_ns": rows * 4e6, "run_ms": rows * 4, "wait_ms": 0, "gc_ms": 0,
                 "python_ms": 0, "each": each}  # fmt: skip
        counted = {"in": {"in": {"rows": rows}}, "left": {received("left"): {"rows": rows}}}[query]
        about = {"id": query, "timestamp": when(at), "batchId": number, "numInputRows": rows,
                 "durationMs": {"triggerExecution": seconds * 1000, "addBatch": 900},
                 "observedMetrics": counted, "sources": []}  # fmt: skip
        self.events += [stage, {"event": "progress", "progress": about}]

    def idle(self, query: str, at: float) -> None:
        self.events.append({"event": "idle", "query": query, "timestamp": when(at)})


def when(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()


@pytest.fixture
def driver() -> Driver:
    return Driver()


@pytest.fixture
def monitor(driver: Driver) -> Monitor:
    """Both queries had batches of a hundred rows until 30 s, and are silent since."""
    made = Monitor(cast(Channel, driver), StandaloneProvider((KIND,)), 0.0, realtime=False)
    made.follow({"in": ["in"], "left": ["left"]})
    for number in range(COLD_BATCHES + 4):
        for query in ("in", "left"):
            driver.ran(query, number, 5.0 * number, 100)
    driver.arrived = {"in": [(0, 0), (30, 600), (60, 600)], "left": [(0, 0), (30, 600), (60, 600)]}
    made.poll(30.0)
    made.forget(30.0)
    return made


def observe(monitor: Monitor, now: float) -> Observation:
    monitor.poll(now)
    return monitor.observe(now, PAIR, {"in": 1, "left": 1})


def test_a_silent_graph_costs_nothing(monitor: Monitor, driver: Driver) -> None:
    for query in ("in", "left"):
        for at in (35.0, 40.0):
            driver.idle(query, at)
    observation = observe(monitor, 42.0)
    assert (observation.total_load, observation.application.lag_seconds, observation.application.stale) == (
        0.0,
        0.0,
        False,
    )
    assert [operator.cpu_seconds for operator in observation.operators.values()] == [0.0, 0.0]


def test_a_query_that_waits_for_the_rows_of_another_costs_what_it_did(
    monitor: Monitor, driver: Driver
) -> None:
    for query in ("in", "left"):
        driver.idle(query, 60.0)
    driver.arrived = {"in": [(60.5, 600), (64.5, 1000)], "left": []}
    driver.busy = {"in"}  # its first batch after the silence
    observation = observe(monitor, 65.0)
    assert observation.application.stale
    assert observation.total_load is not None and observation.total_load > 0
    left = observation.operators["left"]
    assert left.cpu_seconds is not None and left.processed
    assert left.cpu_seconds / left.processed == pytest.approx(0.004)


def test_a_long_batch_is_remembered_while_other_queries_are_silent(monitor: Monitor, driver: Driver) -> None:
    driver.ran("in", COLD_BATCHES + 4, 31.0, 100, seconds=20.0)
    for second in range(3 * RECENT):
        driver.idle("left", 31.0 + second)
        monitor.poll(31.0 + second)
    assert max(batch.seconds for batch in monitor.recent) == 20.0
    assert [batch.started for batch in monitor.recent if batch.idle] == [30.0 + 3 * RECENT]


@pytest.mark.parametrize(
    ("cores", "compiled", "since", "alarmed"),
    [
        (0.98, 0.0, 31.0, True),
        (0.5, 0.0, 31.0, False),  # slow, but not for want of CPU
        (0.98, 0.6, 31.0, False),  # a first late batch of a cold JVM
        (0.98, 0.0, 38.0, False),  # it has not taken longer than ten seconds yet
    ],
)
def test_a_running_batch_that_is_late_on_a_full_node_raises_an_alarm(
    driver: Driver, monitor: Monitor, cores: float, compiled: float, since: float, alarmed: bool
) -> None:
    driver.running["left"] = RunningBatch(9, since=int(since * 1000), stages=1, tasks=4, done=1)
    driver.vitals = Vitals(0, 0.0, cpu_seconds=0.0, compile_seconds=0.0)
    monitor.poll(32.0)
    assert not monitor.overloaded(32.0)
    driver.vitals = Vitals(10_000, 0.1, cpu_seconds=10 * cores, compile_seconds=10 * cores * compiled)
    monitor.poll(42.0)
    assert monitor.overloaded(42.0) is alarmed
    assert monitor.overloaded(42.5) is alarmed  # it looks every few seconds only
