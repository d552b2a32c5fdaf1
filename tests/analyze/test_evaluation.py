from dataclasses import replace

import pytest

from rheostat.analyze.evaluation import Evaluation, evaluate, measured_selectivity
from rheostat.analyze.execution import ExecutionModel, Pipelined, Staged, Storm
from rheostat.model.configuration import NodeKind
from rheostat.model.observation import ApplicationMeasures, NodeMeasures, Observation, OperatorMeasures
from rheostat.model.topology import Operator, Stream, Topology

WORDS = Topology(
    "words",
    (Operator("lines", 0.001), Operator("split", 0.002), Operator("count", 0.005)),
    (Stream("lines", "split"), Stream("split", "count", 8.0)),
)
KIND = NodeKind(cores=1.0, slots=2)  # a slot is half a core
# Ten seconds at 100 rows/s. What is measured differs from what is stated: split costs 4 ms, emits 5 per row.
MEASURED = {
    "lines": OperatorMeasures(1, 1000.0, 1000.0, {"split": 1000.0}, cpu_seconds=1.0),
    "split": OperatorMeasures(2, 1000.0, 500.0, {"count": 2500.0}, cpu_seconds=2.0),
    "count": OperatorMeasures(4, 2500.0, 2500.0, {}, cpu_seconds=2.5),
}


def seen(load: float | None = 100.0, nodes: int = 3, **changed: OperatorMeasures | None) -> Observation:
    operators = {name: found for name, found in {**MEASURED, **changed}.items() if found is not None}
    machines = tuple(NodeMeasures(f"n{n}", 2, 1.0) for n in range(nodes))
    return Observation(0.0, 10.0, operators, machines, ApplicationMeasures({"lines": load}))


def judge(observation: Observation, model: ExecutionModel | None = None) -> Evaluation:
    return evaluate(WORDS, observation, model or Pipelined(), KIND)


def test_demand_cost_and_busy_instances_come_from_what_was_measured() -> None:
    judged = judge(seen()).operators
    assert {name: one.demand for name, one in judged.items()} == {"lines": 100, "split": 100, "count": 500}
    assert {name: one.cost_seconds for name, one in judged.items()} == {
        "lines": 0.001,
        "split": 0.004,
        "count": 0.001,
    }
    # demand * cost / (one core per instance)
    assert judge(seen()).busy == pytest.approx({"lines": 0.1, "split": 0.4, "count": 0.5})
    assert judge(seen(), Staged()).busy == pytest.approx({"lines": 0.2, "split": 0.8, "count": 1.0})


def test_an_operator_that_waits_holds_its_instance_and_takes_no_more_cpu() -> None:
    waits = replace(MEASURED["split"], busy_seconds=10.0)  # 500 rows in 10 s, of which 2 on a core
    judged = judge(seen(split=waits))
    assert judged.busy["split"] == pytest.approx(2.0)
    assert judged.operators["split"].utilisation == pytest.approx(1.0)
    assert judged.operators["split"].cores == pytest.approx(0.4)
    assert judged.cores_of({"lines": 0.1, "split": 4.0, "count": 0.5})["split"] == pytest.approx(0.8)


def test_pipelined_capacity_is_limited_by_instances_and_by_nodes() -> None:
    # One core of work for the nodes, whose cores are 3, then 30.
    few, many = judge(seen()), judge(seen(nodes=30))
    assert few.cpu == pytest.approx(1 / 3)
    assert {n: one.capacity for n, one in few.operators.items()} == pytest.approx(
        {"lines": 100 * 3, "split": 100 * 3, "count": 500 * 3}
    )
    assert {n: one.capacity for n, one in many.operators.items()} == pytest.approx(
        {"lines": 1 / 0.001, "split": 2 / 0.004, "count": 4 / 0.001}
    )
    assert {n: one.utilisation for n, one in few.operators.items()} == pytest.approx(
        {"lines": 0.1, "split": 0.2, "count": 0.125}
    )
    assert {one.health for one in few.operators.values()} == {1.0}


def test_health_is_capacity_over_demand_inside_a_query() -> None:
    split = judge(seen(load=1000.0, nodes=30)).operators["split"]
    assert split.utilisation == pytest.approx(2.0)
    assert split.health == pytest.approx(0.5)
    assert split.capacity == pytest.approx(500.0)


def test_full_nodes_make_every_operator_unwell_although_its_instances_are_idle() -> None:
    judged = judge(seen(load=400.0, nodes=2)).operators  # four cores of work for two
    assert {one.health for one in judged.values()} == {0.5}
    assert judged["lines"].utilisation == pytest.approx(0.4)


def test_health_is_processed_over_received_where_operators_have_queues() -> None:
    lines, split, count = (replace(measures, waiting=0.0) for measures in MEASURED.values())
    judged = judge(seen(lines=lines, split=split, count=count), Storm()).operators
    assert {name: one.health for name, one in judged.items()} == {"lines": 1.0, "split": 0.5, "count": 1.0}


def test_a_queue_is_unwell_until_it_is_gone_and_then_healthy_and_not_more() -> None:
    # In ten seconds 500 rows, of which those of the last two are still on their way.
    emptying = replace(MEASURED["split"], received=400.0, waiting=580.0)
    assert judge(seen(split=emptying), Storm()).operators["split"].health == pytest.approx(0.5)
    emptied = replace(emptying, waiting=80.0)
    assert judge(seen(split=emptied), Storm()).operators["split"].health == 1.0


def test_the_queue_at_a_source_is_that_of_the_busiest_operator_behind_it() -> None:
    behind = replace(MEASURED["lines"], waiting=1200.0)
    judged = judge(seen(lines=behind)).operators
    assert {name: one.health for name, one in judged.items()} == {"lines": 1.0, "split": 0.5, "count": 1.0}
    # ... but not of one behind the next queue
    linked = replace(MEASURED["split"], waiting=0.0, received=500.0)
    judged = judge(seen(lines=behind, split=linked)).operators
    assert {name: one.health for name, one in judged.items()} == {"lines": 0.5, "split": 1.0, "count": 1.0}


def test_staged_operators_share_one_utilisation() -> None:
    # 0.2/1 + 0.8/2 + 1.0/4 + 3 * 0.1/10 with 6 slots
    judged = judge(seen(), Staged(10.0, 0.1)).operators
    assert {n: one.utilisation for n, one in judged.items()} == pytest.approx(dict.fromkeys(judged, 0.88))
    # ... and 4 instances of count are worth 2 on 2 slots
    fewer = judge(seen(nodes=1), Staged(10.0, 0.1)).operators
    assert fewer["count"].utilisation == pytest.approx(0.2 + 0.4 + 0.5 + 0.03)
    assert fewer["count"].health == pytest.approx(1 / 1.13)


def test_tasks_that_outran_their_slots_are_judged_by_their_cpu() -> None:
    quick = replace(MEASURED["split"], busy_seconds=2.0)  # 2 CPU seconds in 2 s: a whole core each
    slow = replace(MEASURED["split"], busy_seconds=6.0)
    may, may_not = Staged(10.0, 0.1, node_slots=2, alone=2.0), Staged(10.0, 0.1, node_slots=2)
    assert judge(seen(split=quick), may).busy["split"] == pytest.approx(100 * 0.004 / 0.5)
    assert judge(seen(split=quick), may_not).busy["split"] == pytest.approx(100 * 2.0 / 500)
    assert judge(seen(split=slow), may).busy["split"] == pytest.approx(100 * 6.0 / 500)


def test_no_load_is_measured_and_costs_what_the_topology_states() -> None:
    quiet = OperatorMeasures(1, 0.0, 0.0, cpu_seconds=0.0)
    judged = judge(seen(load=0.0, lines=quiet, split=quiet, count=quiet))
    assert judged.missing == ()
    for name, one in judged.operators.items():
        assert (one.demand, one.utilisation, one.health) == (0.0, 0.0, 1.0)
        assert one.capacity is None
        assert one.cost_seconds == WORDS.operator(name).cost_seconds


def test_a_stalled_operator_is_missing_and_not_free() -> None:
    stalled = OperatorMeasures(2, received=1000.0, processed=0.0, cpu_seconds=0.0)
    assert judge(seen(split=stalled)) == Evaluation({}, ("CPU of split",))


@pytest.mark.parametrize(
    ("observation", "missing"),
    [
        (seen(load=None), ("load of lines",)),
        (seen(nodes=0), ("nodes",)),
        (seen(split=None), ("measures of split", "CPU of split")),
        (seen(split=OperatorMeasures(2)), ("CPU of split",)),
        (seen(count=replace(MEASURED["count"], cpu_seconds=None)), ("CPU of count",)),
        (seen(count=replace(MEASURED["count"], received=None, processed=0.0)), ("CPU of count",)),
        (seen(load=None, nodes=0), ("load of lines", "nodes")),
    ],
)
def test_what_was_not_measured_is_named_and_nothing_is_judged(
    observation: Observation, missing: tuple[str, ...]
) -> None:
    assert judge(observation) == Evaluation({}, missing)


def test_a_source_without_any_entry_is_missing_too() -> None:
    observation = replace(seen(), application=ApplicationMeasures({}))
    assert judge(observation).missing == ("load of lines",)


def test_a_stream_on_which_nothing_flowed_keeps_its_stated_selectivity() -> None:
    sigma = measured_selectivity(WORDS, seen(lines=OperatorMeasures(1, 0.0, 0.0), count=None))
    assert sigma == {("lines", "split"): 1.0, ("split", "count"): 5.0}


def test_what_state_partitions_take_is_no_cost_per_row() -> None:
    # 2,500 rows in 40 s of slots and 2.5 s of CPU, of which 200 partitions took 38 s
    counted = replace(MEASURED["count"], busy_seconds=40.0, state_seconds=38.0)
    model = Staged(10.0, 0.0, partition_seconds={"count": 0.19})
    judged = judge(seen(count=counted), model).operators["count"]
    assert judged.busy == pytest.approx(500 * 2.0 / 2500)
    assert judged.cost_seconds == pytest.approx(0.001 * 2 / 40)
    ten_times = judge(seen(load=1000.0, count=counted), model).operators["count"]
    # four partitions on six slots take one wave of 0.19 s, whatever the load
    assert ten_times.utilisation - 0.019 == pytest.approx(10 * (judged.utilisation - 0.019))
