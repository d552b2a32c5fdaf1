"""Pipelines are allotted without a solver; enumeration and the programme must agree."""

import itertools
import random

import numpy as np
import pytest

from rheostat.allocate import Component, MeasuredTopology, optimal
from rheostat.allocate.compute_model import ComputeModel
from rheostat.allocate.optimal import _solve
from rheostat.allocate.pipelines import pipeline_units


def pipelines(seed: int, lengths: tuple[int, ...]) -> MeasuredTopology:
    """Independent pipelines, some of them starved, walled off or with equal capacities."""
    rng = random.Random(f"{seed}-{lengths}")
    components = []
    for line, length in enumerate(lengths):
        fed = rng.random() < 0.9
        for place in range(length):
            last = place == length - 1
            components.append(
                Component(
                    name=f"{line}.{place}",
                    max_rate=float(rng.choice((0, 100, 200, 300, 300, 500, 900, rng.uniform(50, 900)))),
                    ratio=rng.choice((0.0, 0.5, 1.0, 1.0, 1.0, 1.0, 2.0)) if place else 1.0,
                    units=rng.randint(1, 3),
                    source=fed and place == 0,
                    children={} if last else {f"{line}.{place + 1}": rng.choice((0.3, 0.5, 1.0, 1.0))},
                )
            )
    rng.shuffle(components)
    return MeasuredTopology(f"pipelines {seed}", tuple(components))


LENGTHS = [(1,), (5,), (2, 3), (1, 2, 2), (3, 3), (1, 1, 1, 2)]
CASES = [(seed, 1 + seed % 4, LENGTHS[seed % len(LENGTHS)]) for seed in range(120)]


@pytest.mark.parametrize(("seed", "units", "lengths"), CASES)
def test_no_allocation_gives_more_and_none_as_good_takes_fewer_units(
    seed: int, units: int, lengths: tuple[int, ...]
) -> None:
    model = ComputeModel(pipelines(seed, lengths))
    combos = [one for one in itertools.product(range(units + 1), repeat=model.size) if sum(one) <= units]
    every = np.array(combos).T
    reached = model.throughput(every)
    fewest = every.sum(axis=0)[reached >= reached.max() * (1 - 1e-9)].min()
    added = pipeline_units(model, units)
    assert added is not None
    assert float(model.throughput(added)) == pytest.approx(float(reached.max()))
    assert added.sum() == fewest


@pytest.mark.parametrize("seed", range(20))
def test_the_programme_agrees_on_longer_pipelines(seed: int) -> None:
    model = ComputeModel(pipelines(seed, (12, 9, 15)))
    added = pipeline_units(model, 25)
    assert added is not None
    solution = _solve(model, 25, 20.0)
    best = float(model.throughput(added))
    assert best == pytest.approx(float(model.throughput(solution.added)), rel=1e-6)
    assert best <= solution.bound * (1 + 1e-6)


def test_the_budget_may_exceed_what_the_pipelines_can_use() -> None:
    walled = (Component("s", 100, source=True, children={"a": 1}), Component("a", 0))
    assert optimal(MeasuredTopology("wall", walled), 50).units == {}


def test_a_fork_a_join_and_numbers_beyond_doubles_are_left_to_the_programme() -> None:
    fork = (
        Component("s", 1, source=True, children={"a": 0.5, "b": 0.5}),
        Component("a", 1),
        Component("b", 1),
    )
    join = (
        Component("s", 1, source=True, children={"a": 1}),
        Component("t", 1, source=True, children={"a": 1}),
        Component("a", 1),
    )
    steep = tuple(
        Component(
            str(i), 1e15, 1.0 if i == 0 else 1e15, source=i == 0, children={str(i + 1): 1} if i < 30 else {}
        )
        for i in range(31)
    )
    for components in (fork, join, steep):
        assert pipeline_units(ComputeModel(MeasuredTopology("not ours", components)), 3) is None
