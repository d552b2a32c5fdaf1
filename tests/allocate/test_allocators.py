"""Each allocator on topologies small enough to know or to enumerate the answer."""

import itertools
import random
from functools import cache

import numpy as np
import pytest

from rheostat.allocate import (
    ALGORITHMS,
    Component,
    MeasuredTopology,
    allocate,
    combined,
    optimal,
    predictive,
    stela,
    throughput,
)
from rheostat.allocate.compute_model import ComputeModel
from rheostat.allocate.even import even_units
from rheostat.model.errors import UserError


def random_topology(seed: int, size: int = 6, sources: int = 1) -> MeasuredTopology:
    """The same for the same seed."""
    rng = random.Random(seed)
    children: list[dict[str, float]] = [{} for _ in range(size)]
    for i in range(sources, size):
        for parent in rng.sample(range(i), k=min(i, rng.randint(1, 2))):
            children[parent][str(i)] = rng.choice((0.25, 0.5, 1.0))
    for shares in children:
        total = max(1.0, sum(shares.values()))
        shares.update({child: share / total for child, share in shares.items()})
    return MeasuredTopology(
        f"random {seed}",
        tuple(
            Component(
                name=str(i),
                max_rate=float(rng.choice((100, 200, 300, 500, 900))),
                ratio=1.0 if i < sources else rng.choice((0.0, 0.5, 1.0, 1.0, 2.0)),
                units=rng.randint(1, 3),
                source=i < sources,
                children=children[i],
            )
            for i in range(size)
        ),
    )


@cache
def best_by_enumeration(seed: int, units: int, size: int, sources: int) -> tuple[float, int]:
    """The highest throughput of any allocation, and the fewest units that reach it."""
    model = ComputeModel(random_topology(seed, size, sources))
    combos = [one for one in itertools.product(range(units + 1), repeat=size) if sum(one) <= units]
    every = np.array(combos).T
    reached = model.throughput(every)
    best = float(reached.max())
    return best, int(every.sum(axis=0)[reached >= best * (1 - 1e-9)].min())


CASES = [(seed, 1 + seed % 4, 4 + seed % 3, 1 + seed % 2) for seed in range(60)]


@pytest.mark.parametrize(("seed", "units", "size", "sources"), CASES)
def test_no_allocation_gives_more_than_optimal_and_none_as_good_takes_fewer_units(
    seed: int, units: int, size: int, sources: int
) -> None:
    answer = optimal(random_topology(seed, size, sources), units)
    best, fewest = best_by_enumeration(seed, units, size, sources)
    assert answer.throughput == pytest.approx(best, rel=1e-6)
    assert sum(answer.units.values()) == fewest
    assert answer.gap == 0


@pytest.mark.parametrize("seed", range(40))
def test_each_answer_is_what_the_compute_model_says_and_within_the_budget(seed: int) -> None:
    topology = random_topology(seed, size=12, sources=2)
    for units in (0, 1, 4, 9):
        for name in ALGORITHMS:
            answer = allocate(topology, units, name)
            assert sum(answer.units.values()) <= units
            assert all(added > 0 for added in answer.units.values())
            assert answer.throughput == pytest.approx(throughput(topology, answer.units))
            assert answer.gain == pytest.approx(answer.throughput - throughput(topology))
            assert answer.gain >= -1e-9


@pytest.mark.parametrize("seed", range(40))
def test_combined_is_the_better_of_two_and_optimal_the_best_of_all(seed: int) -> None:
    topology = random_topology(seed, size=15, sources=2)
    for units in (1, 3, 8):
        reached = {name: allocate(topology, units, name).throughput for name in ALGORITHMS}
        assert reached["combined"] == pytest.approx(max(reached["stela"], reached["predictive"]))
        assert reached["optimal"] >= reached["combined"] * (1 - 1e-7)


def test_the_same_topology_gives_the_same_answer_twice() -> None:
    topology = random_topology(3, size=20, sources=2)
    for name in ALGORITHMS:
        assert allocate(topology, 7, name) == allocate(topology, 7, name)


def line(*rates: float, load: float = 1000) -> MeasuredTopology:
    """A source and one operator after the other."""
    names = [str(i) for i in range(len(rates) + 1)]
    components = [Component("0", load, source=True, children={"1": 1})]
    for i, rate in enumerate(rates, start=1):
        components.append(Component(names[i], rate, children={names[i + 1]: 1} if i < len(rates) else {}))
    return MeasuredTopology("line", tuple(components))


def test_stela_counts_a_sink_that_two_paths_reach_once() -> None:
    forked = MeasuredTopology(
        "two paths",
        (
            Component("s", 1000, source=True, children={"a": 0.5, "b": 0.5}),
            Component("a", 100, children={"l": 0.5, "r": 0.5}),  # both lead to x, which emits 100
            Component("l", 900, children={"x": 1}),
            Component("r", 900, children={"x": 1}),
            Component("x", 900),
            Component("b", 150, children={"y": 1}),  # y emits 150: more than 100, less than twice 100
            Component("y", 900),
        ),
    )
    assert stela(forked, 1).units == {"b": 1}


def test_stela_breaks_ties_by_congestion_and_then_by_the_order_of_the_file() -> None:
    def two(first: float, second: float) -> MeasuredTopology:
        return MeasuredTopology(
            "two",
            (
                Component("s", 1000, source=True, children={"a": 0.5, "b": 0.5}),
                Component("a", first, children={"z": 1}),
                Component("b", second, children={"z": 1}),
                Component("z", 5000),
            ),
        )

    assert stela(two(300, 200), 1).units == {"b": 1}
    assert stela(two(200, 200), 1).units == {"a": 1}


def test_a_source_gets_units_only_when_nothing_else_is_congested() -> None:
    for algorithm in (stela, predictive):
        assert algorithm(line(600), 1).units == {"1": 1}
        assert algorithm(line(1500), 1).units == {"0": 1}


def test_predictive_decongests_what_lies_downstream_in_the_same_batch() -> None:
    assert predictive(line(500, 500), 2).units == {"1": 1, "2": 1}
    assert predictive(line(500, 500), 2).gain == 500


def test_predictive_leaves_alone_what_it_cannot_afford_to_decongest() -> None:
    topology = MeasuredTopology(
        "high and low",
        (
            Component("s", 2000, source=True, children={"a": 0.8, "b": 0.2}),
            Component("a", 800, children={"c": 1}),
            Component("c", 800),
            Component("b", 200),
        ),
    )
    assert predictive(topology, 1).units == {"b": 1}
    assert predictive(topology, 1).gain == 200


def test_predictive_spends_residual_units_on_the_cheapest_batch_out_of_reach() -> None:
    assert predictive(line(500, 500, 500), 2).units == {"1": 1, "2": 1}  # the batch needs 3


def test_optimal_does_not_spend_units_that_bring_nothing() -> None:
    walled = MeasuredTopology(
        "wall", (Component("s", 100, source=True, children={"a": 1}), Component("a", 0))
    )
    assert optimal(walled, 5).units == {}
    assert optimal(line(2000), 0).units == {}


def test_optimal_prefers_even_headroom_among_equals() -> None:
    topology = MeasuredTopology(
        "twins",
        (
            Component("s", 1000, source=True, children={"a": 0.5, "b": 0.5}),
            Component("a", 600, children={"z": 1}),
            Component("b", 600, children={"z": 1}),
            Component("z", 5000),
        ),
    )
    model = ComputeModel(topology)
    assert even_units(model, np.array([0, 2, 0, 0])).tolist() == [0, 1, 1, 0]


def test_units_that_nobody_can_mean_are_refused() -> None:
    for units in (-1, 10**9):
        for algorithm in (stela, predictive, combined, optimal):
            with pytest.raises(UserError, match="units"):
                algorithm(line(500), units)


def test_an_unknown_algorithm_is_refused_with_the_nearest() -> None:
    with pytest.raises(UserError, match="did you mean 'stela'"):
        allocate(line(500), 1, "stella")


def test_extreme_ratios_do_not_overflow() -> None:
    steep = MeasuredTopology(
        "steep",
        tuple(
            Component(
                str(i),
                1e15 if i == 0 else 1e-3,
                1.0 if i == 0 else 1e15,
                1,
                i == 0,
                {str(i + 1): 1} if i < 30 else {},
            )
            for i in range(31)
        ),
    )
    for name in ("stela", "predictive", "combined"):
        assert np.isfinite(allocate(steep, 3, name).throughput)
