import pytest
from hypothesis import given
from hypothesis import strategies as st

from rheostat.analyze.rates import demand, nominal_mix, stated_selectivity, visits
from rheostat.model.topology import Operator, Stream, Topology

WORDS = Topology(
    "words",
    (Operator("lines"), Operator("split"), Operator("count")),
    (Stream("lines", "split", 1.0), Stream("split", "count", 8.0)),
)
STAR = Topology(
    "star",
    (Operator("a", load=300.0), Operator("b", load=100.0), Operator("hub"), Operator("x"), Operator("y")),
    (
        Stream("a", "hub"),
        Stream("b", "hub", 2.0),
        Stream("hub", "x", 3.0, 0.25),
        Stream("hub", "y", 3.0, 0.75),
    ),
)


def test_a_load_is_multiplied_by_the_selectivity_of_each_stream() -> None:
    assert demand(WORDS, {"lines": 50.0}) == {"lines": 50.0, "split": 50.0, "count": 400.0}


def test_streams_that_meet_add_up_and_streams_that_part_share() -> None:
    assert demand(STAR, {"a": 300.0, "b": 100.0}) == {"a": 300, "b": 100, "hub": 500, "x": 375, "y": 1125}


def test_measured_selectivities_replace_the_stated_ones() -> None:
    measured = {("lines", "split"): 0.5, ("split", "count"): 0.0}
    assert demand(WORDS, {"lines": 50.0}, measured) == {"lines": 50.0, "split": 25.0, "count": 0.0}


def test_no_load_asks_nothing_of_anyone() -> None:
    assert set(demand(STAR, {"a": 0.0, "b": 0.0}).values()) == {0.0}


def test_the_mix_follows_the_stated_loads_or_is_even() -> None:
    assert nominal_mix(STAR) == {"a": 0.75, "b": 0.25}
    assert nominal_mix(WORDS) == {"lines": 1.0}
    half = Topology("h", (Operator("a", load=5.0), Operator("b")))
    assert nominal_mix(half) == {"a": 0.5, "b": 0.5}
    silent = Topology("s", (Operator("a", load=0.0), Operator("b", load=0.0)))
    assert nominal_mix(silent) == {"a": 0.5, "b": 0.5}


def test_visits_are_the_rows_per_row_offered() -> None:
    assert visits(STAR) == {"a": 0.75, "b": 0.25, "hub": 1.25, "x": 0.9375, "y": 2.8125}


def test_the_stated_selectivity_includes_the_share() -> None:
    assert stated_selectivity(STAR)[("hub", "y")] == 2.25


@given(st.floats(0, 1e6), st.floats(0, 1e6))
def test_demand_is_linear_in_the_load(a: float, b: float) -> None:
    whole = demand(STAR, {"a": a, "b": b})
    parts = [demand(STAR, {"a": a, "b": 0.0}), demand(STAR, {"a": 0.0, "b": b})]
    for name in STAR.names:
        assert whole[name] == pytest.approx(parts[0][name] + parts[1][name])
