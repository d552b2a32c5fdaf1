"""From the account of a run to its result, with exact answers; no Spark."""

from dataclasses import replace
from pathlib import Path

import pytest

from rheostat.model.configuration import Bounds, NodeKind
from rheostat.model.errors import RheostatError
from rheostat.trials.accounting import Account, judge_run
from rheostat.trials.contestants import contestant
from rheostat.trials.trial import Trial

TRIAL = Trial(
    app="app",
    script=Path("app.py"),
    curve="constant:rate=10:duration=10",
    seed=0,
    nodes=Bounds(1, 2),
    node=NodeKind(cores=1, slots=1),
    mode="microbatch",
    trigger_seconds=4.0,
    period_seconds=5.0,
    cooldown_seconds=0.0,
    warm_up_seconds=0.0,
    partitions=2,
)
# The rate source begins at 100 s; batches take what came in four seconds, and one second to do it.
DONE = [(104.0, 0.0), (105.0, 4.0), (108.0, 4.0), (109.0, 8.0), (112.0, 8.0), (113.0, 12.0)]
PAID = [(99.0, 1, 1), (102.5, 2, 1), (106.25, 2, 2), (109.5, 1, 1)]
MULTILEVEL = contestant("multilevel")


def account(**more: object) -> Account:
    base = Account(list(PAID), [(99.0, 2.0), (106.25, 4.0)], list(DONE), source_began=100.0)
    return replace(base, **more)  # type: ignore[arg-type]


def test_rows_are_counted_by_what_the_source_gave_out_and_lag_by_what_is_not_done() -> None:
    result = judge_run(TRIAL, MULTILEVEL, 1, account(), [])
    assert result.load == [10.0] * 10
    assert result.throughput == [0, 0, 0, 0, 40, 0, 0, 0, 40, 0]
    assert result.lag == [1, 2, 3, 4, 1, 2, 3, 4, 1, 2]  # of the oldest row that is not done
    assert result.nodes == [1, 1, 2, 2, 2, 2, 2, 2, 2, 1]
    assert result.instances == [2, 2, 2, 2, 2, 2, 4, 4, 4, 4]
    assert result.startups == [3.75]


def test_the_warm_up_is_not_judged() -> None:
    warm = replace(TRIAL, warm_up_seconds=4.0)
    result = judge_run(warm, MULTILEVEL, 1, account(), [])
    assert result.load == [10.0] * 10
    assert result.lag[:6] == [1, 2, 3, 4, 1, 2]
    assert result.throughput[:5] == [40, 0, 0, 0, 40]


def test_a_load_that_starts_with_silence_is_judged_from_its_start() -> None:
    silent = replace(TRIAL, curve="square:low=0:high=10:period=8:duration=8")
    result = judge_run(silent, MULTILEVEL, 1, account(), [])
    assert result.load == [0, 0, 0, 0, 10, 10, 10, 10]
    assert result.lag[4:] == [1, 2, 3, 4]


def test_rows_that_no_batch_reported_are_not_done() -> None:
    stuck = judge_run(replace(TRIAL, mode="realtime"), MULTILEVEL, 1, account(done=DONE[:4]), [])
    assert len(stuck.lag) == len(stuck.nodes) == 10
    assert sum(stuck.throughput) == 80
    assert stuck.lag[-1] == 2.0


def test_a_topic_counts_rows_itself() -> None:
    kafka = replace(TRIAL, kafka="somewhere")
    arrived = {99.0: 0.0, 100.0: 0.0, **{100.0 + second: 10.0 * second for second in range(1, 15)}}
    done = [(at, 10 * rows) for at, rows in DONE]
    result = judge_run(kafka, MULTILEVEL, 1, account(arrived=arrived, done=done, source_began=None), [])
    assert (result.load, result.lag) == ([10.0] * 10, [1, 2, 3, 4, 1, 2, 3, 4, 1, 2])
    late = {at: rows for at, rows in arrived.items() if at >= 102}  # first observed after the first rows came
    assert account(arrived=late).begins(kafka) == 102.0


def test_changes_of_spark_allocation_are_changes_of_its_nodes() -> None:
    assert judge_run(TRIAL, contestant("spark-dra"), 1, account(), []).changes == 2


def test_a_run_with_an_incomplete_account_is_not_judged() -> None:
    for incomplete in (
        account(done=DONE[:2]),
        account(source_began=None),
        account(paid=[]),
        account(missed="a batch"),
    ):
        with pytest.raises(RheostatError):
            judge_run(TRIAL, MULTILEVEL, 1, incomplete, [])
