"""Nodes that are lost between two changes, on real Spark: what runs is soon what was decided again."""

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from rheostat.engines.spark import healing
from rheostat.engines.spark.engine import SparkEngine
from rheostat.infrastructure.keeper import members
from rheostat.infrastructure.local import LocalNode, LocalProvider
from rheostat.model.configuration import NodeKind
from rheostat.model.decision import Status
from rheostat.model.observation import Event
from tests.spark.controllers import eventually
from tests.spark.support import application, observe_batches, plan
from tests.spark.test_rescale import check_totals

KIND = NodeKind(cores=1.0, slots=2, memory_mb=1024.0)


@pytest.fixture(scope="module")
def impatient() -> Iterator[LocalProvider]:
    """A cluster whose Master gives a Worker up that is silent for four seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_DAEMON_JAVA_OPTS", "-Dspark.worker.timeout=4")
        with LocalProvider() as provider:
            yield provider


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("healed")


@pytest.fixture(scope="module")
def engine(impatient: LocalProvider, place: Path) -> Iterator[SparkEngine]:
    start = {"in": 1, "key": 2, "total": 2}
    arguments = ("50", "microbatch", "count", str(place / "totals"))
    with application(impatient, place, "totals", *arguments, parallelism=start, kind=KIND) as running:
        observe_batches(running, 2)
        yield running


def whole(engine: SparkEngine, provider: LocalProvider, node: str) -> bool:
    """Whether a node is registered and has its executor."""
    engine.poll()
    if node not in engine.monitor.nodes_of_executors().values():
        return False
    return provider.is_registered(node)


def wait_until_replaced(engine: SparkEngine) -> list[Event]:
    """Observe until what was lost is replaced; all events until then."""
    events: list[Event] = []

    def replaced() -> bool:
        events.extend(engine.observe().events)
        return any("replaced what was lost" in event.text for event in events)

    eventually(replaced, events)
    return events


def test_a_node_that_ends_by_itself_is_replaced_however_long_that_takes(
    engine: SparkEngine, impatient: LocalProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine._actuator, "executor_seconds", 0.5)
    before = engine.configuration
    (lost,) = impatient.nodes()
    lost.process.kill()
    events = wait_until_replaced(engine)
    (node,) = impatient.nodes()
    (late,) = [event.text for event in events if f"{node.name} came for what was lost" in event.text]
    assert late.endswith("executors were ready in 0.5 s, and are waited for")
    assert node.name != lost.name
    assert any(event.text == f"node {lost.name} ended by itself" for event in events)
    assert engine.configuration == before
    assert node.name in engine.monitor.nodes_of_executors().values()
    assert members(lost.process.pid) == []
    observe_batches(engine, 2)


@contextlib.contextmanager
def frozen(node: LocalNode) -> Iterator[None]:
    """The Worker and its executors stand still."""
    pids = members(node.process.pid)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def test_a_frozen_worker_comes_back_although_its_master_gave_it_up(
    engine: SparkEngine, impatient: LocalProvider
) -> None:
    (node,) = impatient.nodes()
    with frozen(node):
        eventually(lambda: not impatient.is_registered(node.name))
        engine.poll()
        assert impatient.nodes() == (node,)
    eventually(lambda: whole(engine, impatient, node.name))
    assert impatient.nodes() == (node,)
    observe_batches(engine, 2)


def test_a_worker_that_stays_frozen_is_replaced(
    engine: SparkEngine, impatient: LocalProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(healing, "BARE_SECONDS", 3.0)
    (lost,), driver = impatient.nodes(), engine.monitor.link.pid
    with frozen(lost):
        events = wait_until_replaced(engine)
    (node,) = impatient.nodes()
    assert node.name != lost.name
    assert engine.monitor.link.pid == driver  # the application itself ran on
    assert any(f"node {lost.name} was given up by the Master" in event.text for event in events)
    assert node.name in engine.monitor.nodes_of_executors().values()
    assert members(lost.process.pid) == []
    observe_batches(engine, 2)


def test_a_node_that_ends_when_state_is_to_be_rewritten_is_replaced_meanwhile(
    engine: SparkEngine, impatient: LocalProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    (lost,) = impatient.nodes()

    def strike(step: str) -> None:
        if step == "parallelism":
            lost.process.kill()

    monkeypatch.setattr(engine._actuator, "before_step", strike)
    outcome = engine.apply(plan(engine, total=3))
    assert outcome.status is Status.APPLIED, outcome.reason
    assert any("state rewritten for 3 instances" in step for step in outcome.steps)
    (node,) = impatient.nodes()
    assert node.name != lost.name
    assert any(f"{node.name} came for it" in event.text for event in engine.observe().events)
    observe_batches(engine, 2)


def test_after_all_that_no_row_is_lost_or_doubled(engine: SparkEngine, place: Path) -> None:
    engine.monitor.link.stop()
    assert check_totals(place / "totals") > 0
