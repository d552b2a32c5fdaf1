"""What windows contribute to a profile."""

from dataclasses import replace

import pytest

from rheostat.analyze.profiles.samples import divided, points, together
from rheostat.model.observation import ApplicationMeasures, NodeMeasures, Observation, OperatorMeasures


def window(rows: float = 600.0, **node: float) -> Observation:
    """Ten seconds of an operator with two instances on two nodes; a row costs 5 ms, a node 0.1 cores more."""
    used = rows * 0.005
    nodes = tuple(
        NodeMeasures(name, slots=2, cores=2.0, cpu=(used / 10 / 2 + 0.1) / 2, **node)  # type: ignore[arg-type]
        for name in ("n1", "n2")
    )
    operators = {
        "a": OperatorMeasures(2, processed=rows, emitted={"b": 2 * rows}, cpu_seconds=used),
        "b": OperatorMeasures(1, processed=2 * rows, cpu_seconds=0.0),
    }
    return Observation(0.0, 10.0, operators, nodes, ApplicationMeasures(load={"a": rows / 10}))


def test_an_instance_is_seen_at_its_own_input_rate_and_cpu() -> None:
    seen = points([window(rows=600.0)])
    assert seen.instances["a"].x == pytest.approx([30.0])  # rows/s into each of two instances
    assert seen.instances["a"].y == pytest.approx([0.15])


def test_a_node_is_seen_with_the_cpu_of_its_instances_and_its_own() -> None:
    seen = points([window(rows=600.0)])
    assert seen.nodes.x == pytest.approx([0.15])
    assert seen.nodes.y == pytest.approx([0.25])


def test_the_selectivity_of_a_stream_is_seen_in_each_window() -> None:
    assert points([window(), window()]).selectivity[("a", "b")] == pytest.approx([2.0, 2.0])


def test_windows_of_cold_jvms_are_left_out_and_counted() -> None:
    seen = points([window(compiling=0.6), window(compiling=0.1)])
    assert (seen.windows, seen.cold, len(seen.instances["a"])) == (1, 1, 1)


def test_a_window_that_repeats_the_last_batch_is_left_out() -> None:
    first = window()
    repeated = replace(first, application=replace(first.application, stale=True))
    assert points([first, repeated]).windows == 1


def test_what_was_not_measured_is_no_point() -> None:
    known = window()
    unknown = replace(
        known,
        operators={**known.operators, "a": replace(known.operators["a"], cpu_seconds=None)},
        nodes=tuple(replace(node, cpu=None) for node in known.nodes),
    )
    seen = points([unknown])
    assert (len(seen.nodes), "a" in seen.instances) == (0, False)


def test_the_last_windows_judge_and_the_first_teach() -> None:
    whole = points(window(rows=100.0 * n) for n in range(1, 11))
    first, last = divided(whole, 0.3)
    assert list(first.instances["a"].x) + list(last.instances["a"].x) == list(whole.instances["a"].x)
    assert (len(first.nodes), len(last.nodes)) == (7, 3)
    assert last.instances["a"].x.min() > first.instances["a"].x.max()


def test_runs_are_joined_one_after_the_other() -> None:
    one, other = points([window(100.0)]), points([window(200.0)])
    assert together([one, other]).instances["a"].x == pytest.approx([5.0, 10.0])
