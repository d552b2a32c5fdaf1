import numpy as np
import pytest

from rheostat.allocate import Component, MeasuredTopology, throughput
from rheostat.allocate.compute_model import ComputeModel
from rheostat.model.errors import UserError

DIAMOND = MeasuredTopology(
    "diamond",
    (
        Component("s", 1000, source=True, children={"a": 0.5, "b": 0.5}),
        Component("a", 400, children={"z": 1}),
        Component("b", 200, ratio=2, children={"z": 1}),
        Component("z", 900),
    ),
)


def seeded(seed: int) -> MeasuredTopology:
    rng = np.random.default_rng(seed)
    size = 12
    parents = [int(rng.integers(0, i)) for i in range(1, size)]
    children: list[dict[str, float]] = [{} for _ in range(size)]
    for child, parent in enumerate(parents, start=1):
        children[parent][str(child)] = 1.0
    for shares in children:
        shares.update({name: 1 / len(shares) for name in shares})
    rates = rng.integers(50, 500, size)
    return MeasuredTopology(
        "tree",
        tuple(Component(str(i), float(rates[i]), source=i == 0, children=children[i]) for i in range(size)),
    )


def test_a_component_receives_the_sum_of_what_its_parents_send() -> None:
    model = ComputeModel(DIAMOND)
    rates = model.rates(model.nothing())
    assert rates.input.tolist() == [0, 500, 500, 800]
    assert rates.processed.tolist() == [1000, 400, 200, 800]
    assert rates.output.tolist() == [1000, 400, 400, 800]


def test_surplus_is_dropped_without_holding_back_the_source() -> None:
    assert throughput(DIAMOND, {"b": 1}) == 900


def test_a_source_with_twice_the_units_emits_twice_as_much() -> None:
    model = ComputeModel(DIAMOND)
    assert model.rates(np.array([1, 0, 0, 0])).output[0] == 2000


def test_many_allocations_at_once_give_the_same_as_each_alone() -> None:
    for seed in range(5):
        model = ComputeModel(seeded(seed))
        many = np.random.default_rng(seed).integers(0, 3, (model.size, 7))
        alone = [float(model.throughput(many[:, column])) for column in range(7)]
        assert model.throughput(many) == pytest.approx(np.array(alone))


def test_no_rows_appear_from_nowhere_when_every_ratio_is_one() -> None:
    for seed in range(10):
        model = ComputeModel(seeded(seed))
        rates = model.rates(model.nothing())
        dropped = (rates.input - rates.processed)[~model.source].sum()
        emitted = rates.output[model.leaf].sum()
        assert emitted + dropped == pytest.approx(rates.output[0])


def test_more_units_never_lower_the_throughput() -> None:
    for seed in range(10):
        model = ComputeModel(seeded(seed))
        added = model.nothing()
        before = float(model.throughput(added))
        for component in np.random.default_rng(seed).integers(0, model.size, 10):
            added[component] += 1
            after = float(model.throughput(added))
            assert after >= before - 1e-9
            before = after


def test_candidates_are_those_that_drop_rows_then_those_at_their_limit_then_sources() -> None:
    def candidates(rate: float) -> list[int]:
        line = (Component("s", 100, source=True, children={"a": 1}), Component("a", rate))
        model = ComputeModel(MeasuredTopology("line", line))
        return [int(i) for i in model.candidates(model.rates(model.nothing()))]

    assert (candidates(90), candidates(100), candidates(110)) == ([1], [1], [0])


def test_a_component_that_can_process_nothing_is_no_candidate() -> None:
    wall = (Component("s", 100, source=True, children={"a": 1}), Component("a", 0))
    model = ComputeModel(MeasuredTopology("wall", wall))
    assert model.candidates(model.rates(model.nothing())).tolist() == [0]


def test_an_unknown_component_in_an_allocation_is_named() -> None:
    with pytest.raises(UserError, match="no component 'y'"):
        throughput(DIAMOND, {"y": 1})
