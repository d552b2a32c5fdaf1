"""Stateful applications of other kinds than the shared one; each has the cluster to itself."""

from pathlib import Path

import pytest

from rheostat.engines.spark.spec import SPREAD_STATE
from rheostat.model.configuration import NodeKind
from rheostat.model.decision import Status
from rheostat.services.local_cluster import LocalCluster

from .shared import TOTALS_KIND
from .state import change_nodes, executors_with_state, tasks_per_executor
from .support import KEYS, application, check_totals, observe_batches, plan

PARALLELISM = {"in": 1, "key": 2, "total": 4}


def test_a_deduplication_in_real_time_mode_is_rescaled(cluster: LocalCluster, tmp_path: Path) -> None:
    start = {"in": 1, "key": 1, "total": 1}
    kind = NodeKind(cores=1.0, slots=4, memory_mb=1024.0)
    arguments = ("100", "realtime", "distinct")
    with application(
        cluster, tmp_path, "totals", *arguments, parallelism=start, mode="realtime", kind=kind
    ) as engine:
        observe_batches(engine, 1)
        outcome = engine.apply(plan(engine, total=2))
        assert outcome.status is Status.APPLIED, outcome.reason
        observed = observe_batches(engine, 1)
        assert observed.operators["total"].parallelism == 2
        assert observed.application.state_rows == KEYS
        assert engine.monitor.rows["total"] == KEYS  # no key came through twice


@pytest.mark.long
def test_state_spreads_over_nodes_before_it_spreads_over_the_executors_of_a_node(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    two = NodeKind(cores=1.0, slots=4, executors=2, memory_mb=1600.0)
    parallelism = {**PARALLELISM, "total": 2}  # one on each executor: of executors alone, nobody has too much
    arguments = ("200", "microbatch", "count", str(tmp_path / "totals"))
    with application(cluster, tmp_path, "totals", *arguments, parallelism=parallelism, kind=two) as engine:
        observe_batches(engine, 4)
        assert tasks_per_executor(engine) == [1, 1]
        change_nodes(engine, nodes=2)
        observe_batches(engine, 3)
        assert tasks_per_executor(engine) == [1, 1]
        assert len({engine.monitor.nodes_of_executors()[item] for item in executors_with_state(engine)}) == 2
    assert check_totals(tmp_path / "totals") > 0


@pytest.mark.long
def test_state_stays_where_a_user_wants_it_to(cluster: LocalCluster, tmp_path: Path) -> None:
    arguments = ("200", "microbatch", "count", str(tmp_path / "totals"))
    off = {SPREAD_STATE: "false"}
    with application(
        cluster, tmp_path, "totals", *arguments, parallelism=PARALLELISM, kind=TOTALS_KIND, settings=off
    ) as engine:
        observe_batches(engine, 3)
        change_nodes(engine, nodes=2)
        observe_batches(engine, 3)
        assert tasks_per_executor(engine) == [4]
