"""The allocators' input from windows whose measures are known."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from rheostat.allocate import MeasuredTopology, combined, stela, throughput
from rheostat.allocate.from_windows import from_windows
from rheostat.analyze.execution import Pipelined
from rheostat.analyze.leaves import leaf_throughput
from rheostat.model.errors import UserError
from rheostat.model.observation import ApplicationMeasures, NodeMeasures, Observation, OperatorMeasures

SECONDS, LOAD = 10.0, 100.0
NODE = NodeMeasures("n1", slots=4, cores=4.0)  # an instance has a core


def operator(
    rows: float, cost: float, instances: int = 1, came: float | None = None, **emitted: float
) -> OperatorMeasures:
    """One that processed rows at a cost in CPU seconds; `came`: it reads a queue, which got so many rows."""
    return OperatorMeasures(
        instances,
        received=rows if came is None else came,
        processed=rows,
        emitted=emitted,
        cpu_seconds=rows * cost,
        waiting=None if came is None else 0.0,
    )


def window(at: float = SECONDS, load: float | None = LOAD, **operators: OperatorMeasures) -> Observation:
    """`a` reads 100 rows/s and sends 60 % of its doubled rows to `b`, the rest to `c`."""
    rows = LOAD * SECONDS
    measured = {
        "a": operator(rows, 0.001, b=1.2 * rows, c=0.8 * rows),
        "b": operator(1.2 * rows, 0.012, came=1.2 * rows),
        "c": operator(0.8 * rows, 0.005, 2, came=0.8 * rows),
        **operators,
    }
    queries = {
        name: ApplicationMeasures(throughput=(o.processed or 0) / SECONDS) for name, o in measured.items()
    }
    application = ApplicationMeasures(load={"a": load}, throughput=LOAD)
    return Observation(at - SECONDS, at, measured, (NODE,), application, queries=queries)


def built(*windows: Observation) -> MeasuredTopology:
    parallelism: Mapping[str, int] = {"a": 1, "b": 1, "c": 2}
    return from_windows("app", windows, parallelism, Pipelined())


def test_a_component_is_an_operator_with_its_instances_and_what_they_can_process() -> None:
    a, b, c = built(window()).components
    assert (a.source, a.given, a.max_rate, a.ratio) == (True, True, LOAD, 2.0)
    assert a.children == pytest.approx({"b": 0.6, "c": 0.4})
    assert (b.source, b.units, b.ratio, b.children) == (False, 1, 1.0, {})
    assert c.units == 2
    assert c.max_rate == pytest.approx(400.0)  # 2 cores / 5 ms


def test_a_source_gets_no_units_because_its_load_is_given() -> None:
    easy = built(window(b=operator(1200, 0.001, came=1200.0)))
    for algorithm in (stela, combined):
        assert algorithm(easy, 5).units == {}
    assert throughput(easy, {"a": 10}) == pytest.approx(throughput(easy)) == pytest.approx(200.0)


def test_an_operator_whose_queue_grows_shows_its_capacity_whatever_its_cpu_says() -> None:
    slow = operator(600, 0.0001, came=1200.0)  # it waits for something, and processes half of what comes
    topology = built(window(b=slow))
    assert topology.components[1].max_rate == pytest.approx(60.0)
    assert throughput(topology) == pytest.approx(60.0 + 80.0)
    answer = combined(topology, 1)
    assert answer.units == {"b": 1}
    assert answer.throughput == pytest.approx(200.0)


def test_an_operator_that_keeps_up_can_process_at_least_what_comes() -> None:
    costly = operator(1200, 0.02, came=1200.0)  # by its share of the CPU it would reach 50 rows/s
    assert built(window(b=costly)).components[1].max_rate == pytest.approx(120.0)


def test_operators_share_the_cores_less_what_the_nodes_do_beside_them() -> None:
    inside = 100 * 0.001 + 120 * 0.012 + 80 * 0.005
    busy = replace(NODE, cpu=(inside + 0.5) / NODE.cores)
    topology = built(replace(window(), nodes=(busy,)))
    assert topology.cores == pytest.approx(NODE.cores - 0.5)
    assert [item.cpu_seconds for item in topology.components] == pytest.approx([0.001, 0.012, 0.005])
    assert built(window()).cores == NODE.cores  # where nobody measured the node


def test_on_full_nodes_a_queue_that_grows_shows_no_capacity() -> None:
    slow = operator(600, 0.0125, came=1200.0)  # 0.75 cores for half of what comes
    full = replace(NODE, cores=1.25, cpu=1.0)
    topology = built(replace(window(b=slow), nodes=(full,)))
    assert topology.components[1].max_rate == pytest.approx(1 / 0.0125)


def test_rows_that_wait_before_a_query_wait_for_its_busiest_operator() -> None:
    rows = LOAD * SECONDS
    chain = {
        "a": replace(operator(0.5 * rows, 0.001, b=0.5 * rows), received=rows),
        "b": operator(0.5 * rows, 0.004, c=0.5 * rows),
        "c": operator(0.5 * rows, 0.002),
    }
    half = ApplicationMeasures(load={"a": LOAD}, throughput=0.5 * LOAD)
    a, b, c = built(replace(window(), operators=chain, application=half, queries={})).components
    assert [a.max_rate, b.max_rate] == pytest.approx([100.0, 50.0])
    assert c.max_rate == pytest.approx(1000.0)  # by its own cost
    assert (a.held_back, b.held_back, c.held_back) == (False, True, True)


def test_windows_are_taken_together_and_each_operator_by_those_that_measured_it() -> None:
    gap = OperatorMeasures(1)  # a congested query ends a batch only now and then
    late = window(20.0, b=operator(1800, 0.01, came=3600.0))
    windows = (
        window(10.0, b=gap),
        replace(late, queries={**late.queries, "b": ApplicationMeasures(throughput=60.0)}),  # in 30 s
        window(30.0, b=gap, c=operator(800, 0.015, 2, 800.0)),
    )
    _, b, c = built(*windows).components
    assert b.max_rate == pytest.approx(60.0)
    assert c.max_rate == pytest.approx(2 / ((0.005 + 0.005 + 0.015) / 3))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"load": None}, "not measured: load of a; wait for more windows"),
        ({"b": OperatorMeasures(1)}, "not measured: CPU of b; wait for more windows"),
        ({"b": operator(0, 0.0, came=0.0)}, "the capacity of b is unknown, because no rows came"),
    ],
)
def test_what_is_missing_is_named_in_one_line(changed: dict[str, OperatorMeasures], words: str) -> None:
    with pytest.raises(UserError, match=words):
        built(window(**changed))  # type: ignore[arg-type]


def test_a_node_that_was_not_measured_is_missing() -> None:
    with pytest.raises(UserError, match="not measured: nodes"):
        built(replace(window(), nodes=()))


def test_the_leaves_throughput_counts_the_rows_that_they_finish() -> None:
    assert leaf_throughput([window()]) == pytest.approx(200.0)
    assert leaf_throughput([window(b=OperatorMeasures(1))]) is None
    assert leaf_throughput([window(b=OperatorMeasures(1)), window()]) == pytest.approx(200.0)
    assert leaf_throughput([]) is None


def test_a_batch_that_began_before_the_window_counts_with_its_own_time() -> None:
    long = window(b=operator(3600, 0.01, came=3600.0))
    queries = {**long.queries, "b": ApplicationMeasures(throughput=60.0)}  # 3,600 rows in a minute
    assert leaf_throughput([replace(long, queries=queries)]) == pytest.approx(140.0)
