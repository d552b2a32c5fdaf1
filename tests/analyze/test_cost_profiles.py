"""What each cost profile has of its own; tests/contracts has what all have in common."""

from dataclasses import replace

import pytest

from rheostat.analyze.cost_profiles import BatchCosts, LinearCosts
from rheostat.analyze.evaluation import evaluate
from rheostat.analyze.execution import Pipelined
from rheostat.model.configuration import NodeKind
from rheostat.model.observation import ApplicationMeasures, NodeMeasures, Observation, OperatorMeasures
from rheostat.model.topology import Operator, Topology

ONE = Topology("one", (Operator("work", 0.5),))


def window(rows: float | None, cpu: float | None) -> Observation:
    work = OperatorMeasures(1, received=rows, processed=rows, cpu_seconds=cpu)
    load = None if rows is None else rows / 10.0
    nodes = (NodeMeasures("n1", slots=1, cores=1.0),)
    return Observation(0.0, 10.0, {"work": work}, nodes, ApplicationMeasures({"work": load}))


def cost(*windows: Observation) -> float:
    profile = LinearCosts(ONE, 1.0)
    for observation in windows:
        profile.learn(observation, evaluate(ONE, observation, Pipelined(), NodeKind(cores=1, slots=1)))
    return profile.busy({"work": 1.0})["work"]


def test_the_linear_cost_is_as_stated_until_something_was_measured() -> None:
    assert cost(window(0.0, 0.0), window(None, 3.0), window(5.0, None)) == 0.5


def test_the_linear_cost_is_cpu_over_rows_of_all_windows() -> None:
    assert cost(window(10.0, 1.0), window(30.0, 7.0)) == pytest.approx(8.0 / 40.0)


def test_what_an_operator_waits_counts_as_its_cost() -> None:
    waits = window(10.0, 1.0)
    work = replace(waits.operators["work"], busy_seconds=6.0)
    assert cost(replace(waits, operators={"work": work})) == pytest.approx(0.6)


def test_what_a_batch_costs_anyway_is_told_from_what_its_rows_cost() -> None:
    samples = [[load, {"work": 1.0 + 0.01 * load}] for load in (100.0, 200.0, 300.0)]
    assert BatchCosts(ONE, samples).busy({"work": 1_000.0}) == pytest.approx({"work": 11.0})


def test_batch_costs_of_other_operators_are_forgotten() -> None:
    assert BatchCosts(ONE, [[500.0, {"another": 9.0}]]).windows == 0
