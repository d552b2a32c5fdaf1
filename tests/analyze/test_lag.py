"""How far a stream is behind, from two counts."""

import numpy as np
import pytest

from rheostat.analyze.lag import Count, lag, rate
from rheostat.workloads import parse_curve

STEADY = parse_curve("constant:rate=10:duration=100")


def test_a_stream_that_keeps_up_lags_by_its_batches() -> None:
    arrived = Count.of_curve(STEADY, seed=0, begins=5.0)
    done = Count.of([(5 + 4.0 * n, 40.0 * (n - 1)) for n in range(1, 20)])  # of 4 s each, done 4 s later
    late = lag(np.arange(20.0, 60.0, 0.1), arrived, done, in_steps=True)
    assert late.min() == pytest.approx(4.0, abs=0.2)
    assert late.max() == pytest.approx(8.0, abs=0.2)


def test_a_stream_that_stands_lags_more_every_second() -> None:
    arrived, done = Count.of_curve(STEADY, seed=0, begins=0.0), Count.of([(0, 0), (10, 100)])
    times = np.array([20.0, 30.0, 90.0])
    assert lag(times, arrived, done, in_steps=True) == pytest.approx(times - 10, abs=1e-3)
    assert rate(times, done).tolist() == [0.0, 0.0, 0.0]


def test_nothing_waits_while_nothing_comes() -> None:
    arrived = Count.of([(0, 0), (10, 100), (60, 100), (70, 200)])
    done = Count.of([(0, 0), (11, 100), (71, 200)])
    late = lag(np.array([9.0, 30.0, 60.0, 65.0, 71.0]), arrived, done, in_steps=True)
    assert late == pytest.approx([9.0, 0.0, 0.0, 5.0, 0.0], abs=0.05)


def test_rows_flow_between_the_ends_of_real_time_batches() -> None:
    arrived, done = Count.of_curve(STEADY, seed=0, begins=0.0), Count.of([(0, 0), (50, 500)])
    times = np.array([25.0])
    assert lag(times, arrived, done, in_steps=False) == pytest.approx([0.0], abs=0.01)
    assert lag(times, arrived, done, in_steps=True) == pytest.approx([25.0], abs=0.01)
    assert rate(times, done) == pytest.approx([10.0])
