import numpy as np
import pytest

from rheostat.engines.simulator.record import Record


def test_lag_is_the_age_of_the_oldest_waiting_row() -> None:
    record = Record(np.full(10, 100.0), 1.0)
    for step, backlog in enumerate([0, 0, 50, 150, 250, 0, 0, 0, 0, 0], start=1):
        record.add(step, backlog, 0.0, 1, 1)
    assert record.lag()[:6] == pytest.approx([0, 0, 0.5, 1.5, 2.5, 0])
    assert [record.lag_at(step) for step in range(1, 11)] == pytest.approx(record.lag().tolist())


def test_throughput_is_load_minus_what_joins_the_backlog() -> None:
    record = Record(np.array([100.0, 100.0, 100.0]), 1.0)
    for step, backlog in enumerate([40.0, 0.0, 0.0], start=1):
        record.add(step, backlog, 0.0, 1, 1)
    assert record.throughput() == pytest.approx([60, 140, 100])
    assert record.mean_rates(0, 2) == pytest.approx((100, 100))
