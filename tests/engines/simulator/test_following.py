"""The simulated cost of following a forecast."""

import numpy as np
import pytest

from rheostat.analyze.forecasts.calibrated import LEVELS
from rheostat.analyze.forecasts.forecast import MEDIAN, Forecast
from rheostat.analyze.forecasts.replay import Load, divide
from rheostat.engines.simulator.following import PEAK_NODES, prepare
from rheostat.model.errors import UserError

RATES = np.array(([100.0] * 30 + [1_000.0] * 30) * 4)
LOAD = Load(RATES, 60.0, 60)


def forecasts(load: Load, ahead: int, factor: float = 1.0) -> list[Forecast | None]:
    """What will come, times a factor, with no doubt about it."""
    rates = np.append(load.judged, [load.judged[-1]] * ahead) * factor
    made: list[Forecast | None] = []
    for number in range(len(load.judged)):
        coming = rates[number + 1 : number + 1 + ahead].tolist()
        made.append(Forecast(60.0 * (number + 1), 60.0, LEVELS, tuple((rate,) * 3 for rate in coming)))
    return made


def test_a_forecast_that_knows_the_future_costs_little_more_than_the_oracle_and_no_lag() -> None:
    ground = prepare(LOAD)
    knowing = ground.cost(forecasts(LOAD, ground.ahead))
    assert knowing.node_seconds_to_oracle < 1.1
    assert knowing.p99_lag_seconds == 0.0


def test_one_that_is_too_high_costs_nodes_and_one_that_is_too_low_costs_lag() -> None:
    ground = prepare(LOAD)
    knowing, high, low = (ground.cost(forecasts(LOAD, ground.ahead, factor)) for factor in (1.0, 1.5, 0.6))
    assert high.node_seconds > 1.3 * knowing.node_seconds
    assert low.mean_lag_seconds > 10 * max(knowing.mean_lag_seconds, 1.0)


def test_without_a_forecast_it_reacts_and_is_late_after_a_jump() -> None:
    ground = prepare(LOAD)
    reacting = ground.cost(())
    assert reacting.p99_lag_seconds > 30
    bare: list[Forecast | None] = [
        Forecast(each.issued_at, 60.0, (MEDIAN,), ((each.values[0][1],),)) if each else None
        for each in forecasts(LOAD, 1)
    ]
    assert ground.cost(bare) == reacting  # nor does it follow one that cannot say how sure it is


def test_the_peak_needs_ten_nodes_whatever_the_size_of_the_load() -> None:
    for scale in (0.001, 1.0, 1e6):
        ground = prepare(Load(RATES * scale, 60.0, 60))
        assert ground.oracle.max() == PEAK_NODES


def test_a_load_that_would_take_too_long_is_refused() -> None:
    with pytest.raises(UserError, match="too long to be simulated"):
        prepare(Load(np.ones(150_000), 60.0, 60))


def test_a_load_must_be_long_enough_for_both_parts() -> None:
    with pytest.raises(UserError, match="at least 45 are needed"):
        divide(RATES[:50], 60.0, 0.7)
    assert divide(RATES, 60.0, 0.7).training == 168
