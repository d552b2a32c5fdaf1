"""Applications that fan out and in: several queries, linked by Kafka topics, scaled as one."""

import json
import time
from collections import Counter
from pathlib import Path

import pytest

from rheostat.engines.spark.engine import SparkEngine
from rheostat.infrastructure import kafka
from rheostat.infrastructure.local import LocalProvider
from rheostat.model.configuration import NodeKind
from rheostat.model.decision import Status
from tests.spark.support import application, plan

ROWS, RATE = 600, 60
KIND = NodeKind(cores=1.5, slots=3, memory_mb=1024.0)


def kept(folder: Path) -> Counter[tuple[int, str]]:
    """Every row that the sinks hold, and how often."""
    rows: Counter[tuple[int, str]] = Counter()
    for path in folder.glob("*/*.json"):
        rows.update((value, by) for value, by in json.loads(path.read_text()))
    return rows


def wait_for(engine: SparkEngine, folder: Path, count: int, limit: float = 240.0) -> None:
    until = time.monotonic() + limit
    while sum(kept(folder).values()) < count:
        assert time.monotonic() < until, f"{sum(kept(folder).values())} of {count} rows within {limit} s"
        time.sleep(0.5)
        engine.poll()


def expected(shape: str) -> Counter[tuple[int, str]]:
    names = {"diamond": ("left", "right"), "star": ("a", "b")}[shape]
    return Counter({(value, name): 1 for value in range(ROWS) for name in names})


@pytest.mark.parametrize("shape", ["diamond", "star"])
def test_every_row_takes_every_path_once_while_operators_are_rebalanced(
    shape: str, cluster: LocalProvider, broker: kafka.Broker, tmp_path: Path
) -> None:
    results = tmp_path / "results"
    with application(
        cluster, tmp_path, "graph", shape, str(RATE), str(ROWS), str(results),
        parallelism={}, kind=KIND, kafka=broker.servers,
    ) as engine:  # fmt: skip
        wait_for(engine, results, ROWS // 4)
        runs, last = engine.monitor.run_id, engine.topology.sinks[0]
        outcome = engine.apply(plan(engine, **{last: 2}))
        assert (outcome.status, engine.monitor.run_id) == (Status.APPLIED, runs)
        wait_for(engine, results, 2 * ROWS)
        queue = [batch.backlog for batch in engine.monitor.recent if batch.query == last]
        assert queue and None not in queue
        rows = dict(engine.monitor.rows)
    assert kept(results) == expected(shape)
    assert rows[f"{last}:in"] == rows[last] == (2 * ROWS if shape == "diamond" else ROWS)


def test_topology_10_hands_every_row_on_to_one_child(
    cluster: LocalProvider, broker: kafka.Broker, tmp_path: Path
) -> None:
    results = tmp_path / "results"
    with application(
        cluster, tmp_path, "graph", "topology10", str(RATE), str(ROWS), str(results),
        parallelism={}, kind=KIND, kafka=broker.servers,
    ) as engine:  # fmt: skip
        wait_for(engine, results, ROWS)
        rows = dict(engine.monitor.rows)
    found = kept(results)
    assert Counter(value for value, _ in found.elements()) == Counter(range(ROWS))
    assert sum(rows[name] for name in ("2", "3", "4")) == ROWS
    assert rows["1 to 2"] == rows["2:in"] == rows["2"]
    assert {by for _, by in found} == {"5", "6", "7", "8", "9", "10"}
