import numpy as np

from rheostat.allocate import Component, MeasuredTopology, optimal
from rheostat.allocate.compute_model import ComputeModel
from rheostat.allocate.improve import improve_units

FORK = MeasuredTopology(
    "fork",
    (
        Component("in", 1000, source=True, children={"poor": 0.3, "rich": 0.7}),
        Component("poor", max_rate=100),
        Component("rich", max_rate=100),
    ),
)


def test_a_badly_placed_unit_moves_to_where_it_gains_more() -> None:
    model = ComputeModel(FORK)
    bettered = improve_units(model, np.array([3, 0, 0]), 3)  # all for the source, which nobody can follow
    assert float(model.throughput(bettered)) == optimal(FORK, 3).throughput
    assert bettered.sum() == 3


def test_a_spare_unit_is_used() -> None:
    model = ComputeModel(FORK)
    bettered = improve_units(model, model.nothing(), 2)
    assert bettered.sum() == 2
    assert float(model.throughput(bettered)) == 400


def test_it_never_makes_an_allocation_worse_or_larger() -> None:
    model = ComputeModel(FORK)
    for start in np.random.default_rng(1).integers(0, 4, size=(50, 3)):
        bettered = improve_units(model, start, int(start.sum()))
        assert bettered.sum() <= start.sum()
        assert model.throughput(bettered) >= model.throughput(start)
        assert (bettered >= 0).all()
