"""What another number of state partitions would bring, with exact answers."""

from dataclasses import replace

import pytest

from rheostat.analyze.evaluation import Evaluation, OperatorEvaluation
from rheostat.analyze.execution import ExecutionModel, FixedTasks, Pipelined, Staged
from rheostat.analyze.state_partitions import advise
from rheostat.model.configuration import Bounds, NodeKind
from rheostat.model.observation import ApplicationMeasures, NodeMeasures, Observation, OperatorMeasures
from rheostat.model.rewrite import Rewrite
from rheostat.model.topology import Operator, Stream, Topology

HOT = Topology("hot", (Operator("1-scan"), Operator("2-aggregate")), (Stream("1-scan", "2-aggregate"),))
KIND, BOUNDS = NodeKind(cores=1.0, slots=2), Bounds(1, 3)
COUNTED = OperatorMeasures(200, partitions=200, partition_seconds=0.1)
STATE = ApplicationMeasures(state_rows=1e6, state_bytes=4e7)
PINNED = {"1-scan": 2, "2-aggregate": 200}


def fixed(partition_seconds: float = 0.1, trigger: float = 3.0) -> FixedTasks:
    return FixedTasks(trigger, 0.1, PINNED, partition_seconds={"2-aggregate": partition_seconds})


def advised(
    counted: OperatorMeasures = COUNTED,
    model: ExecutionModel | None = None,
    busy: float = 0.3,
    bounds: Bounds = BOUNDS,
    state: ApplicationMeasures = STATE,
) -> Rewrite | None:
    operators = {"1-scan": OperatorMeasures(2), "2-aggregate": counted}
    observation = Observation(0.0, 10.0, operators, (NodeMeasures("n1", 2, 1.0),), state)
    judged = {name: OperatorEvaluation(100.0, 0.001, busy, 100.0, 0.5, 1.0) for name in operators}
    return advise(HOT, observation, Evaluation(judged), model or fixed(), bounds, KIND)


def test_as_many_partitions_as_the_largest_cluster_has_slots_are_advised() -> None:
    # Rows take 0.3 of the interval, two stages 0.2 s, 100 waves of partitions 10 s: 10.2 / 0.7 as it is late.
    # Three waves: 0.9 + 0.2 + 0.3 s. The pause: 10 + 1.1 + 8.6 + 206 * 0.024 s.
    rewrite = advised()
    assert rewrite is not None
    assert (rewrite.operators, rewrite.before, rewrite.after) == (("2-aggregate",), 200, 6)
    assert rewrite.batch_seconds == pytest.approx(10.2 / 0.7)
    assert rewrite.predicted_seconds == pytest.approx(1.4)
    assert rewrite.pause_seconds == pytest.approx(24.644)


@pytest.mark.parametrize(
    "counted",
    [
        replace(COUNTED, partitions=6),
        replace(COUNTED, partitions=4),
        replace(COUNTED, partitions=None),
        replace(COUNTED, partition_seconds=None),
    ],
)
def test_nothing_is_advised_where_partitions_are_few_or_not_measured(counted: OperatorMeasures) -> None:
    assert advised(counted) is None


def test_what_saves_less_than_a_fifth_of_a_batch_is_not_worth_a_pause() -> None:
    # 97 of 100 waves are saved, 1.01 s: not a fifth of 5.24 s (4 s of rows), but of 4.24 s.
    assert advised(model=fixed(0.0104, 10.0), busy=0.4) is None
    assert advised(model=fixed(0.0104, 10.0), busy=0.3) is not None


def test_what_saves_less_than_a_tenth_of_the_interval_is_not_worth_a_pause() -> None:
    assert advised(model=fixed(0.01, 10.0), busy=0.0001) is None
    assert advised(model=fixed(0.0104, 10.0), busy=0.0001) is not None


def test_a_pause_that_batches_do_not_make_up_for_within_an_hour_is_not_worth_it() -> None:
    # 13.2 s of 14.6 s are saved, 3254 s in an hour; to rewrite 4e8 rows takes 3440 s.
    assert advised(state=ApplicationMeasures(state_rows=3e8)) is not None
    assert advised(state=ApplicationMeasures(state_rows=4e8)) is None


def test_where_rows_alone_are_too_many_only_nodes_can_help() -> None:
    assert advised(busy=1.1) is None


def test_without_limits_on_nodes_every_partition_may_be_needed() -> None:
    assert advised(bounds=Bounds()) is None


def test_a_model_without_batches_advises_nothing() -> None:
    assert advised(model=Pipelined()) is None
    assert advised(model=Staged(3.0, 0.1, PINNED)) is None  # it does not know what a partition costs
