"""A stream to which nothing comes, without Spark: idle triggers, and the rows after them."""

from dataclasses import replace
from typing import Any

import pytest

from rheostat.engines.spark.observe.application_measures import application, together
from rheostat.engines.spark.observe.batches import Ledger
from rheostat.engines.spark.observe.operator_measures import operators
from rheostat.engines.spark.observe.query_window import Query
from rheostat.model.observation import ApplicationMeasures
from rheostat.model.topology import Operator, Stream, Topology
from tests.engines.spark.test_measures import CHAIN, KINDS, batch, progress, read, stage, window


def idle(second: int) -> dict[str, Any]:
    return {"event": "idle", "query": "q", "timestamp": f"1970-01-01T00:01:{second:02d}.000Z"}


def silent_query() -> Query:
    """Ten rows a second for ten seconds, then none; a batch every five seconds while there are rows."""
    query = Query("q", ["in", "work"], Ledger(60.0, source="in", query="q"), 5.0)
    query._cold = 0
    query.ledger.count_arrivals([(60_000, 0), (70_000, 100), (100_000, 100)])
    events = [
        event
        for number, second in ((0, 5), (1, 10))
        for event in (
            stage(number, 2 * number, []),
            stage(number, 2 * number + 1, [2 * number]),
            progress(number, second, 50),
        )
    ]
    for ended in read(query.ledger, [*events, *(idle(second) for second in range(15, 40, 5))])[0]:
        query.add(ended, 2)
    return query


STAGES = {"in": (0,), "work": (1,)}


def test_a_silent_stream_has_no_lag_and_its_operators_have_nothing_to_do() -> None:
    query = silent_query()
    query.close()
    for ended in read(query.ledger, [idle(40)])[0]:
        query.add(ended, 2)
    quiet = query.window(False, 35.0, 44.0)
    result = application({"in": 1.0}, quiet, 5.0)
    assert (result.load, result.throughput, result.backlog, result.lag_seconds) == (
        {"in": 0.0},
        0.0,
        0.0,
        0.0,
    )
    assert (result.batch_seconds, result.batches, result.stale) == (0.0, 0, False)
    measured = operators(CHAIN, CHAIN.names, quiet, STAGES, {"in": 1, "work": 3}, {}, KINDS)["work"]
    assert (measured.parallelism, measured.received, measured.processed, measured.cpu_seconds) == (3, 0, 0, 0)


def test_a_silent_stream_keeps_the_state_of_its_last_batch_and_its_number() -> None:
    ledger = Ledger(60.0, "in")
    kept = [{"numRowsTotal": 7, "memoryUsedBytes": 70}]
    _, silent = read(ledger, [stage(3, 10, []), progress(3, 10, 40, stateOperators=kept), idle(15)])[0]
    assert (silent.idle, silent.number, silent.started, silent.input_rows) == (True, 3, 15.0, 0)
    assert (silent.state_rows, silent.state_bytes, silent.stages) == (7, 70, ())


def test_rows_after_a_silence_have_waited_since_it_ended_and_cost_what_the_last_ones_did() -> None:
    query = silent_query()
    query.close()
    query.ledger.count_arrivals([(101_000, 120), (105_000, 200)])
    query.busy = True
    again = query.window(False, 40.0, 45.0)  # the batch that began at 40 s runs still
    result = application({"in": 1.0}, again, 5.0)
    assert result.stale
    assert result.load == {"in": pytest.approx(20.0)}
    assert result.lag_seconds == pytest.approx(45 - 35)
    assert operators(CHAIN, CHAIN.names, again, STAGES, {}, {}, KINDS)["work"].cpu_seconds == 0.1


def test_beside_others_a_query_of_a_long_trigger_counts_with_its_last_batch_until_the_next_is_due() -> None:
    query = Query("q", ["in", "work"], Ledger(60.0, source="in", query="q"), 5.0)
    query._cold, query.trigger_seconds = 0, 30.0
    for number, second in ((0, 5), (1, 35)):
        job = [stage(number, 2 * number, []), stage(number, 2 * number + 1, [2 * number])]
        for ended in read(query.ledger, [*job, progress(number, second, 300)])[0]:
            query.add(ended, 2)
    assert application({"in": 1.0}, query.window(False, 30.0, 40.0), 30.0).load == {"in": pytest.approx(10.0)}
    query.close()
    alone = query.window(False, 40.0, 50.0)
    assert application({"in": 1.0}, alone, 30.0).load == {"in": None}
    resting = query.window(False, 40.0, 50.0, beside_others=True)
    result = application({"in": 1.0}, resting, 30.0)
    assert result.load == {"in": pytest.approx(10.0)}
    assert (result.batches, result.stale) == (0, False)
    assert operators(CHAIN, CHAIN.names, resting, STAGES, {}, {}, KINDS)["work"].cpu_seconds == 0.1
    overdue = query.window(False, 90.0, 100.0, beside_others=True)
    assert application({"in": 1.0}, overdue, 30.0).load == {"in": None}


def test_the_load_after_a_long_silence_is_known_at_once() -> None:
    query = silent_query()
    query.ledger.count_arrivals([(100_000 + 250 * step, 100) for step in range(8_000)])  # over half an hour
    for second in range(40, 60):
        for ended in read(query.ledger, [idle(second)])[0]:
            query.add(replace(ended, started=2000.0 + second, finished=2000.0 + second), 2)
    query.close()
    query.ledger.count_arrivals([(2_122_000, 100), (2_126_000, 300)])
    result = application({"in": 1.0}, query.window(False, 2062.0, 2066.0), 5.0)
    assert result.load == {"in": pytest.approx(50.0)}
    assert len(query.ledger.arrivals) == 4


def test_a_batch_after_a_silence_is_not_late_by_the_silence() -> None:
    query = silent_query()
    query.close()
    for ended in read(query.ledger, [progress(2, 40, 50)])[0]:
        query.add(ended, 2)
    assert application({"in": 1.0}, query.window(False, 35.0, 42.0), 5.0).lag_seconds == pytest.approx(
        41.5 - 35
    )


def test_a_long_batch_after_a_silence_is_no_silence_if_the_source_reports_nothing() -> None:
    silent = replace(batch(4, 10.0, 0), finished=10.0, rows={}, stages=(), backlog=0.0, idle=True)
    waits, runs = window(silent, now=70.0), replace(window(silent, now=70.0), busy=True)
    assert (waits.quiet, application({"in": 1.0}, waits, None).lag_seconds) == (True, 0.0)
    assert (runs.quiet, application({"in": 1.0}, runs, None).lag_seconds) == (False, 60.0)
    assert operators(CHAIN, CHAIN.names, runs, STAGES, {}, {}, KINDS)["work"].cpu_seconds is None
    later = replace(window(before=silent, now=70.0), busy=True)
    assert application({"in": 1.0}, later, 5.0).lag_seconds == 60.0


def test_a_source_that_stopped_reporting_proves_no_silence() -> None:
    silent = replace(batch(4, 45.0, 0), finished=45.0, rows={}, stages=(), backlog=0.0, idle=True)
    offered = ((0.0, 0.0), (40.0, 100.0))
    runs = replace(window(silent, now=100.0), offered=offered, busy=True)
    assert (runs.quiet, application({"in": 1.0}, runs, 5.0).lag_seconds) == (False, 55.0)


def test_rows_that_wait_until_there_are_enough_of_them_are_no_silence() -> None:
    ledger = Ledger(60.0, "in")
    source = [{"description": "KafkaV2[Subscribe[events]]", "endOffset": {"events": {"0": 40}}}]
    ledger.count_arrivals([(60_000, 0), (65_000, 40)])
    assert len(read(ledger, [stage(0, 1, []), progress(0, 6, 40, sources=source), idle(11)])[0]) == 2
    ledger.count_arrivals([(75_000, 90)])
    assert read(ledger, [idle(16)])[0] == []


def test_the_first_rows_of_all_are_no_load_of_zero() -> None:
    query = Query("q", ["in", "work"], Ledger(60.0, source="in", query="q"), 5.0)
    query.ledger.count_arrivals([(60_000, 0), (95_000, 0), (100_000, 5_000)])
    for ended in read(query.ledger, [idle(second) for second in (25, 30, 35)])[0]:
        query.add(ended, 2)
    result = application({"in": 1.0}, query.window(False, 30.0, 40.0), 5.0)
    assert (result.load, result.backlog) == ({"in": None}, None)


def test_a_silence_after_an_absurd_batch_has_a_query_and_a_number() -> None:
    ledger = Ledger(60.0, "in", name="the-query")
    events = [stage(7, 1, []), progress(7, 5, 40), progress("x", 6, 40), idle(10)]  # type: ignore[arg-type]
    batches = read(ledger, events)[0]
    assert [(each.number, each.query, each.idle) for each in batches] == [
        (7, "the-query", False), (8, "the-query", False), (8, "the-query", True),
    ]  # fmt: skip


def test_in_a_graph_a_query_that_waits_for_rows_costs_what_it_did() -> None:
    unknown = {
        "in": ApplicationMeasures({"in": 10.0}, batch_seconds=None),
        "left": ApplicationMeasures({"left": 0.0}, batch_seconds=0.0),
    }
    chain = Topology("d", tuple(map(Operator, unknown)), (Stream("in", "left"),))
    assert together(chain, {name: name for name in unknown}, unknown).batch_seconds is None
    query = silent_query()
    query.close()
    for ended in read(query.ledger, [idle(40)])[0]:
        query.add(ended, 2)
    quiet = query.window(False, 35.0, 44.0)
    borrowed = operators(CHAIN, CHAIN.names, query.standing_in(quiet), STAGES, {"work": 3}, {}, KINDS)["work"]
    assert (borrowed.cpu_seconds, borrowed.processed, borrowed.parallelism) == (0.1, 50, 3)


def test_the_batch_before_a_silence_still_counts_in_its_window() -> None:
    last, silent = batch(4, 6.0, 40), replace(batch(4, 9.0, 0), finished=9.0, stages=(), idle=True)
    assert application({"in": 1.0}, window(last, silent, before=batch(3, 1.0, 40)), 5.0).lag_seconds == 6.0
