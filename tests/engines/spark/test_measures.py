"""From Spark's events to measures, without Spark: small streams of events with exact answers."""

from dataclasses import replace
from typing import Any

import pytest

from rheostat.engines.spark.events import read_events
from rheostat.engines.spark.observe.application_measures import application, stage_overhead, together
from rheostat.engines.spark.observe.batch_window import BatchWindow
from rheostat.engines.spark.observe.batches import Batch, Ledger, StageRun, TaskRun
from rheostat.engines.spark.observe.operator_measures import operators
from rheostat.engines.spark.observe.partition_costs import with_partition_costs
from rheostat.engines.spark.observe.query_window import Query
from rheostat.engines.spark.protocol import QueryStage
from rheostat.model.configuration import NodeKind
from rheostat.model.observation import ApplicationMeasures, Event
from rheostat.model.topology import Operator, Stream, Topology

KIND = NodeKind(cores=0.5, slots=2)
KINDS = {"n1": KIND, "n2": KIND}
CHAIN = Topology("chain", (Operator("in"), Operator("work")), (Stream("in", "work"),))


def stage(batch: int, number: int, parents: list[int], cpu: float = 0.1, **more: Any) -> dict[str, Any]:
    event = {
        "event": "stage", "id": number, "parents": parents, "query": "q", "batch": batch, "tasks": 2,
        "failed": False,
        "cpu_ns": cpu * 1e9, "run_ms": 500, "wait_ms": 100, "gc_ms": 0, "python_ms": 0,
        "each": [["0", cpu * 0.25e9, 30, 250, 0, None], ["1", cpu * 0.75e9, 10, 250, 1, None]],
    }  # fmt: skip
    return {**event, **more}


def progress(batch: int, second: int, rows: int, **more: Any) -> dict[str, Any]:
    about = {
        "id": "q", "timestamp": f"1970-01-01T00:01:{second:02d}.000Z", "batchId": batch, "numInputRows": rows,
        "durationMs": {"triggerExecution": 1500, "addBatch": 1200},
        "observedMetrics": {"in": {"rows": rows}, "work": {"rows": 2 * rows}},
        "sources": [{"startOffset": None, "endOffset": None, "latestOffset": None}],
    }  # fmt: skip
    return {"event": "progress", "progress": {**about, **more}}


def read(ledger: Ledger, events: list[dict[str, Any]]) -> tuple[list[Batch], list[Event]]:
    """What a ledger makes of Spark's events."""
    return ledger.read(read_events(events))


def test_a_batch_is_its_stages_and_its_progress() -> None:
    events = [stage(3, 10, []), stage(3, 11, [10], cpu=0.3), progress(3, 10, 40)]
    [batch], reported = read(Ledger(60.0, "in"), events)
    assert (batch.number, batch.started, batch.finished, batch.input_rows) == (3, 10.0, 11.5, 40)
    assert [run.cpu_seconds for run in batch.stages] == [0.1, pytest.approx(0.3)]
    assert batch.stages[0].busy_seconds == pytest.approx(0.4)
    assert reported == []


@pytest.mark.parametrize(
    ("sources", "end"),
    [
        ([{"description": "RatePerSecond", "endOffset": 17}], 17),
        ([{"description": "KafkaV2[Subscribe[events]]", "endOffset": {"events": {"0": 40, "1": 2}}}], 42),
        ([{"description": "FileStreamSource", "endOffset": {"logOffset": 3}}], None),
        ([{"description": "one", "endOffset": 17}, {"description": "other", "endOffset": 17}], None),
        ([{"description": "one", "endOffset": None}], None),
    ],
)
def test_a_batch_says_where_its_source_stands(sources: list[dict[str, Any]], end: float | None) -> None:
    [batch], _ = read(Ledger(60.0, "in"), [stage(0, 5, []), progress(0, 1, 4, sources=sources)])
    assert (batch.end, batch.doubt) == (end, "")


def test_what_is_broadcast_beforehand_is_no_stage_of_the_chain() -> None:
    events = [stage(0, 5, []), stage(0, 6, []), stage(0, 7, [6]), progress(0, 1, 4)]
    [batch], _ = read(Ledger(60.0, "in"), events)
    assert len(batch.stages) == 2


def test_a_stage_that_ran_again_after_an_executor_was_lost_cost_both_runs() -> None:
    events = [stage(0, 5, [], cpu=0.1), stage(0, 5, [], cpu=0.2), progress(0, 1, 4)]
    [batch], _ = read(Ledger(60.0, "in"), events)
    assert [run.cpu_seconds for run in batch.stages] == [pytest.approx(0.3)]


def test_time_in_python_workers_counts_as_cpu() -> None:
    [batch], _ = read(Ledger(60.0), [stage(0, 1, [], cpu=0.1, python_ms=400), progress(0, 1, 4)])
    assert batch.stages[0].cpu_seconds == pytest.approx(0.5)


def test_another_query_of_the_same_application_is_not_mixed_in() -> None:
    other = progress(9, 2, 1000)
    other["progress"]["id"] = "other"
    batches, _ = read(
        Ledger(60.0), [stage(0, 1, []), progress(0, 1, 4), stage(9, 8, [], query="other"), other]
    )
    assert [batch.number for batch in batches] == [0]


def test_an_idle_progress_is_no_batch_that_ran() -> None:
    [batch], _ = read(Ledger(60.0), [progress(4, 1, 0, durationMs={"triggerExecution": 5})])
    assert batch.idle


@pytest.mark.parametrize(
    ("end", "latest", "waiting"),
    [
        ({"topic": {"0": 10, "1": 20}}, {"topic": {"0": 15, "1": 22}}, 7),
        ('{"rows": 5}', '{"rows": 9}', 4),
        ("17", "19", None),  # the rate source counts seconds
        (None, None, None),
        ({"x": "y"}, {"x": "z"}, None),
    ],
)
def test_backlog_is_known_where_offsets_count_rows(end: Any, latest: Any, waiting: float | None) -> None:
    source = [{"endOffset": end, "latestOffset": latest}]
    [batch], _ = read(Ledger(60.0), [progress(0, 1, 4, sources=source)])
    assert batch.backlog == waiting


def test_the_backlog_follows_from_what_the_source_was_offered() -> None:
    ledger = Ledger(60.0, realtime=True)
    ledger.count_arrivals([(60_000, 0), (70_000, 100)])
    [batch], _ = read(ledger, [progress(0, 2, 20)])  # done at 3.5 s, when 35 rows had come
    assert batch.backlog == pytest.approx(15)


def batch(number: int, started: float, count: float, **more: Any) -> Batch:
    runs = (
        StageRun(1, 0.1, 0.1, (TaskRun("0", 0.1, count, 0.1),)),
        StageRun(2, 0.4, 0.5, (TaskRun("0", 0.1, 30, 0.2), TaskRun("1", 0.3, 10, 0.3, 1))),
    )
    values: dict[str, Any] = {
        "finished": started + 1.0, "input_rows": count, "backlog": None,
        "rows": {"in": count, "work": 2 * count},
        "stages": runs, "parts": {"addBatch": 0.8},
    }  # fmt: skip
    return Batch(number, started, **{**values, **more})


def window(
    *batches: Batch, before: Batch | None = None, realtime: bool = False, now: float = 10.0
) -> BatchWindow:
    return BatchWindow(before, batches, realtime, now)


def test_load_is_what_arrived_between_two_triggers_and_throughput_what_was_done() -> None:
    result = application({"in": 1.0}, window(batch(1, 2, 40), batch(2, 4, 60), before=batch(0, 0, 7)), 2.0)
    assert result.load == {"in": 25.0}  # 100 rows in the 4 s from trigger 0 to trigger 2
    assert result.throughput == 25.0
    assert result.batch_seconds == 1.0
    assert result.batches == 2


def test_rows_that_stay_at_the_source_count_as_load() -> None:
    early, late = batch(0, 0, 10, backlog=0.0), batch(1, 2, 10, backlog=30.0)
    result = application({"in": 1.0}, window(late, before=early, now=3.0), 2.0)
    assert result.load == {"in": 20.0}
    assert result.backlog == 20.0 + 30.0  # a second's arrivals and what the source held back


def test_load_is_as_fresh_as_the_sources_own_count() -> None:
    batches = (batch(0, 0, 0), batch(1, 4, 20), batch(2, 8, 20))  # a row is worth two of what it counts
    offered = ((0.0, 0.0), (8.0, 80.0), (10.0, 180.0), (12.0, 280.0))
    result = BatchWindow(batches[-2], batches[-1:], False, 12.0, 10.0, offered, batches)
    assert application({"in": 1.0}, result, 4.0).load == {"in": 25.0}  # 50 a second since 10 s, by half
    assert application({"in": 1.0}, replace(result, offered=offered[:2]), 4.0).load == {
        "in": 5.0
    }  # nothing newer


def test_while_a_long_batch_runs_the_last_one_stands_in() -> None:
    query = Query("q", ["in", "work"], Ledger(0.0, source="in"), 5.0)
    for number, started in enumerate((0.0, 2.0, 4.0, 6.0)):  # two are cold
        query.add(batch(number, started, 20), slots=2)
    query.ledger.count_arrivals([(second * 1000, 10.0 * second) for second in range(21)])
    query.close(changed=8.0)
    stale = query.window(False, 15.0, 20.0)
    result = application({"in": 1.0}, stale, 2.0)
    assert (result.load, result.batches, result.stale) == ({"in": 10.0}, 0, True)
    assert (result.throughput, result.batch_seconds) == (None, None)
    measured = operators(CHAIN, CHAIN.names, stale, {"in": (0,), "work": (1,)}, {"work": 7}, {}, KINDS)
    assert measured["work"].cpu_seconds == pytest.approx(0.4)
    assert measured["work"].parallelism == 7  # as it is now, not as it was when that batch ran
    query.add(batch(4, 7.0, 40), slots=2)  # it began before the change
    assert query.window(False, 15.0, 20.0).batches == stale.batches
    query.add(batch(5, 15.0, 40), slots=2)
    assert not query.window(False, 15.0, 20.0).stale


def test_neither_cold_batches_nor_those_across_a_change_measure_the_overhead_of_a_stage() -> None:
    query = Query("q", ["in", "work"], Ledger(0.0, source="in"), 5.0)
    query.stages = (QueryStage("in"), QueryStage("work"))
    for number, started in enumerate((0.0, 2.0, 4.0)):
        query.add(batch(number, started, 20), slots=2)
    assert len(query.overheads) == 1
    query.begin_change()
    query.add(batch(3, 6.0, 20), slots=4)  # within it
    query.close(changed=9.0)
    query.add(batch(4, 8.0, 40), slots=4)
    assert len(query.overheads) == 1
    query.add(batch(5, 10.0, 40), slots=4)
    assert len(query.overheads) == 2


def test_without_a_batch_nothing_is_known() -> None:
    result = application({"in": 1.0}, window(), 2.0)
    assert (result.load, result.throughput, result.lag_seconds) == ({"in": None}, None, None)
    measured = operators(
        CHAIN, CHAIN.names, window(), {"in": (0,), "work": (1,)}, {"in": 1, "work": 2}, {}, KINDS
    )
    assert (measured["work"].processed, measured["work"].cpu_seconds, measured["work"].parallelism) == (
        None,
        None,
        2,
    )


def test_rows_cpu_and_skew_belong_to_the_operator_whose_stage_it_is() -> None:
    both = window(batch(1, 2, 40), batch(2, 4, 60), before=batch(0, 0, 7))
    result = operators(CHAIN, CHAIN.names, both, {"in": (0,), "work": (1,)}, {}, {}, KINDS)
    assert (result["in"].processed, result["in"].emitted) == (100, {"work": 100})
    assert (result["work"].processed, result["work"].parallelism) == (100, 2)
    assert result["work"].cpu_seconds == pytest.approx(0.8)
    assert result["work"].skew == pytest.approx(1.5)  # 30 of 40 rows in one of two


def test_a_plain_scripts_rows_are_those_that_its_stages_read() -> None:
    bare = window(batch(1, 2, 40, rows={}), before=batch(0, 0, 7, rows={}))
    result = operators(CHAIN, CHAIN.names, bare, {"in": (0,), "work": (1,)}, {}, {}, KINDS)
    assert (result["in"].processed, result["work"].processed) == (40, 40)


def test_an_operator_that_shares_anothers_stage_costs_nothing_of_its_own() -> None:
    result = operators(
        CHAIN, CHAIN.names, window(batch(1, 2, 40)), {"in": (0, 1), "work": ()}, {"work": 1}, {}, KINDS
    )
    assert result["work"].cpu_seconds == 0.0
    assert result["in"].cpu_seconds == pytest.approx(0.5)


def test_lag_is_the_age_of_the_oldest_row_when_its_batch_was_done() -> None:
    steady = window(batch(1, 2, 40), batch(2, 4, 60), before=batch(0, 0, 7), now=5.5)
    assert (
        application({"in": 1.0}, steady, 2.0).lag_seconds == 3.0
    )  # came right after trigger 1 at 2 s, done at 5 s
    stalled = window(batch(1, 2, 40), batch(2, 4, 60), before=batch(0, 0, 7), now=25.0)
    assert (application({"in": 1.0}, stalled, 2.0).lag_seconds or 0) > 20


def test_the_overhead_of_a_stage_is_the_time_in_which_no_task_ran() -> None:
    # in: 0.1 s on one slot; work: 0.5 s on two = 0.25 s; the batch took 2 s
    slow = batch(1, 2, 40, finished=4.0)
    assert stage_overhead(slow, 2, 2) == pytest.approx((2.0 - 0.35) / 2)
    assert stage_overhead(slow, 2, 1) == pytest.approx((2.0 - 0.6) / 2)  # one after the other
    assert stage_overhead(slow, 3, 2) is None  # stages that do not match tell nothing


def test_a_stateful_stage_says_what_its_partitions_took_apart_from_its_rows() -> None:
    # work's two tasks held their slots for 0.5 s, rows took 0.1 s of them
    query = Query("", ("in", "work"), Ledger(60.0), 5.0)
    query.stages = (QueryStage("in"), QueryStage("work", stateful=True))
    for number in range(5):  # of which two are cold
        query.add(batch(number, 2.0 * number, 40, update_seconds=(0.1,), finished=2.0 * number + 2), slots=2)
    assert list(query.partition_costs["work"]) == pytest.approx([0.2] * 3)
    result = operators(CHAIN, CHAIN.names, query.window(False, 0.0, 10.0), query.shares(), {}, {}, KINDS)
    assert (result["work"].partitions, result["in"].partitions) == (2, None)
    assert result["work"].partition_seconds == pytest.approx(0.2)
    assert (result["work"].busy_seconds, result["work"].state_seconds) == pytest.approx((2.5, 2.0))
    assert result["work"].row_busy_seconds == pytest.approx(0.5)
    assert result["in"].partition_seconds is result["in"].state_seconds is None


def test_state_that_foreach_batch_uses_twice_costs_both_times() -> None:
    planned = (QueryStage("in"), QueryStage("work", stateful=True))
    states = [{"allUpdatesTimeMs": 200}]
    first = [stage(0, 1, [], place=0, places=2), stage(0, 2, [1], place=1, places=2)]
    again = [stage(0, 3, [], place=0, places=2), stage(0, 4, [3], place=1, places=2)]
    [read_twice], _ = read(Ledger(60.0, "in"), [*first, *again, progress(0, 1, 4, stateOperators=states)])
    work = with_partition_costs(read_twice, planned).stages[1]
    assert work.busy_seconds == pytest.approx(1.0)  # in both runs its two tasks held their slots for 0.25 s
    assert work.state_seconds == pytest.approx(0.8)
    assert len(work.each) == 2


def test_what_rows_took_is_read_per_stateful_operator_from_below() -> None:
    above_first = [{"allUpdatesTimeMs": 300, "commitTimeMs": 80}, {"allUpdatesTimeMs": 100}]
    [both], _ = read(Ledger(60.0), [stage(0, 1, []), progress(0, 1, 4, stateOperators=above_first)])
    assert both.update_seconds == (0.1, 0.3)
    [absurd], _ = read(Ledger(60.0), [progress(1, 2, 4, stateOperators=[{"allUpdatesTimeMs": "x"}])])
    assert absurd.update_seconds == ()


@pytest.mark.parametrize(
    "more", [{"update_seconds": ()}, {"idle": True}, {"doubt": "absurd"}, {"stages": ()}]
)
def test_a_batch_that_does_not_tell_leaves_the_cost_of_partitions_unknown(more: dict[str, Any]) -> None:
    planned = (QueryStage("in"), QueryStage("work", stateful=True))
    plain = batch(1, 2, 40, **{"update_seconds": (0.1,), **more})
    assert with_partition_costs(plain, planned) == plain


def test_an_operator_that_reads_a_topic_has_a_queue_of_its_own() -> None:
    diamond = Topology("d", (Operator("in"), Operator("left")), (Stream("in", "left"),))
    rows = {"left:in": 30.0, "left": 15.0}
    first, last = (
        replace(batch(n, 2.0 * n, 30), rows=rows, backlog=wait) for n, wait in ((1, 10.0), (2, 50.0))
    )
    result = operators(diamond, ["left"], window(last, before=first), {"left": (1, 0)}, {}, {}, KINDS)["left"]
    assert (result.processed, result.received, result.waiting) == (30.0, 70.0, 50.0)


def test_rows_that_leave_a_query_go_to_everyone_who_reads_the_topic() -> None:
    star = Topology(
        "s",
        (Operator("in"), Operator("a"), Operator("b")),
        (Stream("in", "a", 2.0, 0.5), Stream("in", "b", 2.0, 0.5)),
    )
    both = window(batch(1, 2, 40), before=batch(0, 0, 7))
    result = operators(star, ["in"], both, {"in": (0,)}, {}, {}, KINDS)["in"]
    assert result.emitted == {"a": 40.0, "b": 40.0}


def test_lags_add_up_along_the_worst_path_and_backlogs_over_all_queries() -> None:
    diamond = Topology(
        "d",
        tuple(map(Operator, ("in", "a", "b", "out"))),
        (Stream("in", "a", 2, 0.5), Stream("in", "b", 2, 0.5), Stream("a", "out"), Stream("b", "out")),
    )
    lags = {"in": 1.0, "a": 2.0, "b": 5.0, "out": 0.5}
    measured = {
        name: ApplicationMeasures({name: 10.0}, throughput=9.0, backlog=3.0, lag_seconds=lag)
        for name, lag in lags.items()
    }
    result = together(diamond, {name: name for name in lags}, measured)
    assert (result.lag_seconds, result.backlog) == (6.5, 12.0)
    assert (dict(result.load), result.throughput) == ({"in": 10.0}, 9.0)
    begins = {**measured, "in": replace(measured["in"], lag_seconds=None)}
    assert together(diamond, {name: name for name in lags}, begins).lag_seconds is None


@pytest.mark.parametrize("finished", [2.0, None])
def test_what_is_said_of_batches_is_said_of_one_query(finished: float | None) -> None:
    quick = ApplicationMeasures(
        batch_seconds=finished, trigger_seconds=3.0, running_seconds=1.0, tasks_done=7, tasks_left=1,
        late_batches=1,
    )  # fmt: skip
    rare = ApplicationMeasures(
        batch_seconds=finished and 30.0, trigger_seconds=60.0, running_seconds=25.0, tasks_done=5,
        tasks_left=95, late_batches=0,
    )  # fmt: skip
    two = Topology("d", (Operator("quick"), Operator("rare")), ())
    result = together(two, {"quick": "quick", "rare": "rare"}, {"quick": quick, "rare": rare})
    leading = quick if finished else rare
    for name in ("batch_seconds", "trigger_seconds", "running_seconds", "tasks_done", "late_batches"):
        assert getattr(result, name) == getattr(leading, name), name


@pytest.mark.parametrize("idle", [True, False])
def test_a_rewrite_of_state_counts_as_a_batch_that_nobody_misses(idle: bool) -> None:
    last = replace(batch(5, 0, 40, run="first"), idle=idle)
    assert application({"in": 1.0}, window(batch(7, 2, 40, run="second"), before=last), 2.0).batches == 1
    assert application({"in": 1.0}, window(batch(8, 2, 40, run="second"), before=last), 2.0).batches == 0
    assert application({"in": 1.0}, window(batch(7, 2, 40, run="first"), before=last), 2.0).batches == 0
