"""What changes cost, by their kind, the state and the load."""

import pytest

from rheostat.analyze.profiles.changes import LEAST, Change, change_costs


def test_a_few_changes_have_a_median() -> None:
    costs = change_costs([Change("node start", seconds, 0.0, 100.0) for seconds in (10.0, 12.0, 50.0)])
    assert list(costs) == ["node start"]
    assert costs["node start"].seconds(5e9, 1000.0) == 12.0


def test_more_changes_tell_state_and_load_apart() -> None:
    changes = [
        Change("rescale", 2.0 + 8.0 * gigabytes + 0.5 * load / 1000, gigabytes * 1e9, load)
        for gigabytes in (0.1, 1.0, 3.0)
        for load in (100.0, 5000.0)
    ]
    assert len(changes) >= LEAST
    cost = change_costs(changes)["rescale"]
    assert (cost.fixed, cost.per_gigabyte, cost.per_thousand_rows) == pytest.approx((2.0, 8.0, 0.5))
    assert cost.seconds(2e9, 1000.0) == pytest.approx(18.5)


def test_more_load_never_makes_a_change_cheaper() -> None:
    changes = [Change("node start", 30.0 - load / 1000, 0.0, load) for load in range(0, 10_000, 1000)]
    assert change_costs(changes)["node start"].per_thousand_rows == 0.0
