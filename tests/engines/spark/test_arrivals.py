"""When rows arrived, in equal parts of a window: made-up batches and samples with exact answers."""

from dataclasses import replace
from itertools import pairwise

import pytest

from rheostat.engines.spark.observe.arrivals import arrivals, load
from rheostat.engines.spark.observe.batch_window import BatchWindow
from rheostat.engines.spark.observe.batches import Batch
from rheostat.engines.spark.observe.operator_measures import operators
from rheostat.engines.spark.query_graph import received
from rheostat.model.topology import Operator, Stream, Topology


def batch(number: int, started: float, rows: float, backlog: float | None = None) -> Batch:
    counts = {"in": rows, received("left"): rows}
    return Batch(number, started, started + 1.0, rows, backlog, counts, (), {})


def steady(*triggers: float, rate: float = 100.0) -> tuple[Batch, ...]:
    """Batches at these moments under a constant load; the first finds what came in the 2 s before it."""
    return tuple(
        batch(number, after, rate * (after - before))
        for number, (before, after) in enumerate(pairwise((triggers[0] - 2.0, *triggers)))
    )


def window(*batches: Batch, **more: object) -> BatchWindow:
    values = {"realtime": False, "now": 24.0, "start": 0.0, **more}
    return BatchWindow(batches[0], batches[1:], **values)  # type: ignore[arg-type]


def test_batches_that_grow_under_a_constant_load_show_a_flat_line() -> None:
    growing = window(*steady(0.0, 2.0, 5.0, 10.0, 18.0))
    assert arrivals(growing) == pytest.approx([400.0] * 6)  # 100 rows/s in each of six parts of 4 s
    assert load(growing) == pytest.approx(100.0)


def test_a_rising_load_shows_a_rising_line_even_in_batches_of_equal_length() -> None:
    rising = [batch(n, 4.0 * n, rows) for n, rows in enumerate((100.0, 100.0, 200.0, 300.0))]
    assert arrivals(window(*rising, now=12.0)) == pytest.approx([50, 50, 100, 100, 150, 150])


def test_rows_that_stay_at_the_source_arrived_too() -> None:
    limited = [batch(n, 4.0 * n, 100.0, backlog=300.0 * n) for n in range(4)]
    assert arrivals(window(*limited, now=12.0)) == pytest.approx([200.0] * 6)


def test_in_real_time_mode_a_batch_takes_rows_until_it_ends() -> None:
    first, second = batch(0, 0.0, 100), replace(batch(1, 2.0, 120), finished=7.0)
    assert arrivals(window(first, second, realtime=True, now=6.0)) == pytest.approx([20.0] * 6)


def test_a_sources_own_count_tells_what_no_batch_has_seen_yet() -> None:
    counted = tuple((float(at), 10.0 * max(0, at - 12)) for at in range(25))  # it begins in the middle
    one_batch = window(*steady(0.0, 2.0), offered=counted, latest=steady(0.0, 2.0))
    assert arrivals(replace(one_batch, latest=(batch(1, 14.0, 0), batch(2, 24.0, 100.0)))) == pytest.approx(
        [0, 0, 0, 40, 40, 40]
    )


def test_what_a_source_counts_may_be_worth_other_numbers_of_rows() -> None:
    counted = ((0.0, 0.0), (24.0, 240.0))
    halves = (batch(0, 0.0, 0), batch(1, 20.0, 100.0))  # 100 rows where 200 were counted
    told = window(*halves, offered=counted, latest=halves)
    assert arrivals(told) == pytest.approx([20.0] * 6)
    assert sum(arrivals(told)) == pytest.approx((load(told) or 0) * 24)


def test_a_count_that_covers_too_little_of_the_window_or_begins_anew_is_not_used() -> None:
    batches = steady(0.0, 12.0, 24.0)
    for counted in (((16.0, 0.0), (24.0, 9.0)), ((0.0, 90.0), (12.0, 95.0), (13.0, 0.0), (24.0, 9.0))):
        assert arrivals(window(*batches, offered=counted, latest=batches)) == pytest.approx([400.0] * 6)


def test_the_edges_that_no_sample_covers_do_not_look_like_a_fall() -> None:
    batches = steady(0.0, 12.0, 24.0)
    counted = ((1.0, 0.0), (12.0, 1100.0), (23.0, 2200.0))
    late = replace(window(*batches, offered=counted), latest=(batch(1, 12.0, 0), batch(2, 23.0, 1100.0)))
    assert arrivals(late) == pytest.approx([400.0] * 6)


def test_a_silence_is_known_and_the_first_rows_of_all_are_not() -> None:
    silent = ((0.0, 5.0), (24.0, 5.0))
    assert arrivals(BatchWindow(None, (), False, 24.0, offered=silent)) == (0.0,) * 6
    first = BatchWindow(None, (batch(0, 20.0, 500),), False, 24.0, offered=((0.0, 0.0), (24.0, 9.0)))
    assert arrivals(first) == arrivals(BatchWindow(None, (), False, 24.0)) == ()


def test_each_first_operator_of_a_query_has_its_arrivals_and_no_other() -> None:
    graph = Topology(
        "d",
        tuple(map(Operator, ("in", "left", "more"))),
        (Stream("in", "left"), Stream("left", "more")),
    )
    measured = operators(graph, ["left", "more"], window(*steady(0.0, 12.0, 24.0)), {}, {}, {}, {})
    assert measured["left"].arrivals == pytest.approx([400.0] * 6)
    assert (measured["more"].arrivals, measured["more"].waiting) == ((), None)
