import pytest
from hypothesis import given
from hypothesis import strategies as st

from rheostat.model.errors import UserError
from rheostat.model.graph import check_name, check_names, check_shares, downstream_order


def test_names_that_are_different_pass() -> None:
    check_names(["a", "A", "ä", "a b", "1"])


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ([], "there is no part"),
        (["a", ""], "one part has an empty name"),
        (["a", " \t"], "one part has an empty name"),
        (["a", "b", "a"], "part 'a' is stated twice"),
        (["a\nb"], r"part 'a\\nb': a name must be"),
        (["\x1b[31m"], r"part '\\x1b\[31m'"),
        (["\ud800"], "can be printed"),
        (["x" * 201], "at most 200 characters"),
    ],
)
def test_unusable_names_are_refused_and_named(names: list[str], said: str) -> None:
    with pytest.raises(UserError, match=said):
        check_names(names, "part")


@given(st.text(max_size=300))
def test_a_name_that_passes_can_be_shown_on_one_line(name: str) -> None:
    try:
        check_name(name, "operator")
    except UserError as error:
        assert len(str(error).splitlines()) == 1
    else:
        assert len(name.splitlines()) == 1
        name.encode()


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        ({"b": 1.1}, "operator 'a': its shares add up to 1.1, more than 1"),
        ({"b": 0.6, "c": 0.6}, "operator 'a': its shares add up to 1.2"),
        ({"b": -0.1}, "operator 'a': the share for 'b' is -0.1"),
        ({"b": float("nan")}, "operator 'a': the share for 'b' is nan"),
        ({"b": float("inf")}, "operator 'a': the share for 'b' is inf"),
        ({"x": 1.0}, "operator 'a' sends to 'x', which does not exist"),
    ],
)
def test_impossible_shares_are_refused_and_the_operator_named(shares: dict[str, float], said: str) -> None:
    with pytest.raises(UserError, match=said):
        check_shares({"a": shares, "b": {}, "c": {}})


def test_shares_that_pass_1_by_floating_point_dust_are_accepted() -> None:
    check_shares({"a": {"b": 0.1, "c": 0.2, "d": 0.7}, "b": {}, "c": {}, "d": {"b": 0.0}})


def test_an_unknown_child_is_told_with_the_nearest_name() -> None:
    with pytest.raises(UserError, match="did you mean 'count'"):
        check_shares({"split": {"cuont": 1}, "count": {}})


def test_everyone_comes_after_all_that_feed_it() -> None:
    children = {"d": {}, "b": {"d": 1.0}, "c": {"d": 1.0}, "a": {"b": 0.5, "c": 0.5}}
    order = downstream_order(children)
    assert sorted(order) == ["a", "b", "c", "d"]
    assert all(order.index(name) < order.index(child) for name in children for child in children[name])


@pytest.mark.parametrize(
    ("children", "member"),
    [({"a": {"a": 1.0}}, "a -> a"), ({"s": {"a": 1.0}, "a": {"b": 1.0}, "b": {"a": 1.0}}, "a -> b|b -> a")],
)
def test_a_cycle_is_refused_and_told_in_the_direction_of_the_streams(
    children: dict[str, dict[str, float]], member: str
) -> None:
    with pytest.raises(UserError, match=rf"in a cycle: .*({member})"):
        downstream_order(children)


def test_a_cycle_of_thousands_is_refused_in_a_short_line() -> None:
    ring = {str(n): {str((n + 1) % 5000): 1.0} for n in range(5000)}
    with pytest.raises(UserError, match="in a cycle") as refused:
        downstream_order(ring)
    assert len(str(refused.value)) < 200


def test_a_chain_of_thousands_is_ordered() -> None:
    chain = {str(n): ({str(n + 1): 1.0} if n < 4999 else {}) for n in range(5000)}
    assert downstream_order(chain) == tuple(str(n) for n in range(5000))
