from typing import Any

import numpy as np
import pytest

from rheostat.analyze.judging import Measures, Series, judge

TEN = 10.0  # every step is one window of ten seconds


def run(
    load: list[float],
    throughput: list[float],
    *,
    nodes: list[float] | None = None,
    lag: list[float] | None = None,
    step: float = TEN,
    oracle: list[float] | None = None,
    **more: Any,
) -> Measures:
    size = len(load)
    series = Series(
        step,
        np.array(load),
        np.array(throughput),
        np.array(lag or [0.0] * size),
        np.array(nodes or [2.0] * size),
        np.full(size, 3.0),
    )
    return judge(
        series, np.array(oracle or [2.0] * size), more.pop("peak", 4), more.pop("changes", 0), **more
    )


def test_degradation_is_the_mean_part_of_the_load_that_throughput_misses() -> None:
    assert run([100, 100, 200, 50], [100, 50, 100, 60]).throughput_degradation == pytest.approx(
        (0 + 0.5 + 0.5 + 0.2) / 4
    )


def test_windows_without_load_do_not_count() -> None:
    assert run([0, 0, 100], [0, 5, 50]).throughput_degradation == pytest.approx(0.5)
    assert run([0, 0, 0], [0, 0, 0]).throughput_degradation == 0.0


def test_within_a_window_rows_may_wait() -> None:
    load, throughput = [100.0] * 20, [0.0, 200.0] * 10
    assert run(load, throughput, step=1.0).throughput_degradation == 0.0
    assert run(load, throughput, step=10.0).throughput_degradation == 1.0


def test_lag_is_told_as_mean_and_99th_percentile() -> None:
    measures = run([1.0] * 101, [1.0] * 101, lag=[float(n) for n in range(101)])
    assert measures.mean_lag_seconds == pytest.approx(50.0)
    assert measures.p99_lag_seconds == pytest.approx(99.0)


def test_nodes_are_compared_with_the_peak_and_with_the_oracle() -> None:
    measures = run([1.0] * 4, [1.0] * 4, nodes=[1, 2, 3, 2], oracle=[1, 1, 2, 1], peak=4, changes=3)
    assert measures.mean_nodes == 2.0
    assert measures.nodes_saved == pytest.approx(0.5)
    assert measures.node_seconds == 80.0
    assert measures.node_seconds_to_oracle == pytest.approx(8 / 5)
    assert measures.overshoot == pytest.approx(0.5)
    assert measures.mean_instances == 3.0
    assert measures.reconfigurations == 3


def test_using_fewer_nodes_than_the_oracle_is_no_overshoot() -> None:
    assert run([1.0] * 4, [1.0] * 4, nodes=[1, 1, 1, 1], oracle=[2, 2, 3, 2]).overshoot == 0.0


def test_more_nodes_than_peak_provisioning_saves_a_negative_part() -> None:
    assert run([1.0] * 2, [1.0] * 2, nodes=[6, 6], peak=4).nodes_saved == pytest.approx(-0.5)


def test_settling_is_the_time_from_a_step_until_throughput_follows() -> None:
    load = [100.0] * 10 + [200.0] * 20
    assert run(load, load).settling_seconds == 10.0  # told by the first window after the step
    late = [100.0] * 13 + [200.0] * 17
    assert run(load, late).settling_seconds == 40.0


def test_a_throughput_that_follows_for_less_than_a_minute_has_not_settled() -> None:
    load = [100.0] * 10 + [200.0] * 20
    relapse = [100.0] * 12 + [200.0] * 5 + [100.0] + [200.0] * 12
    assert run(load, relapse).settling_seconds == 90.0
    steady = [100.0] * 12 + [200.0] * 6 + [100.0] + [200.0] * 11
    assert run(load, steady).settling_seconds == 30.0


def test_a_run_that_never_settles_counts_until_its_end() -> None:
    load = [100.0] * 10 + [200.0] * 20
    assert run(load, [100.0] * 30).settling_seconds == (30 - 9) * TEN


def test_settling_is_the_mean_over_the_steps_up_and_down() -> None:
    load = [100.0] * 20 + [200.0] * 20 + [100.0] * 20
    throughput = [100.0] * 22 + [200.0] * 22 + [100.0] * 16  # two windows late, then four
    assert run(load, throughput).settling_seconds == pytest.approx((30 + 50) / 2)


def test_a_load_without_steps_has_no_settling_time() -> None:
    assert run([100.0] * 30, [50.0] * 30).settling_seconds is None
    slow = [100.0 * 1.05**n for n in range(30)]
    assert run(slow, slow).settling_seconds is None


def test_a_step_from_nothing_is_a_step() -> None:
    load = [0.0] * 10 + [100.0] * 20
    assert run(load, [0.0] * 12 + [100.0] * 18).settling_seconds == 30.0


def test_a_run_of_less_than_four_windows_has_no_settling_time() -> None:
    assert run([1.0, 100.0, 100.0], [1.0, 100.0, 100.0]).settling_seconds is None


def test_windows_may_be_as_long_as_a_trigger_interval() -> None:
    load, throughput = [100.0] * 12, [0.0, 0.0, 300.0] * 4
    assert run(load, throughput, window=30.0).throughput_degradation == 0.0
