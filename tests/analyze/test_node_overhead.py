import json

import pytest

from rheostat.analyze.node_overhead import (
    Overhead,
    OverheadProfile,
    even_node_loads,
    instance_utilisation,
)
from rheostat.model.observation import (
    ApplicationMeasures,
    InstanceMeasures,
    NodeMeasures,
    Observation,
    OperatorMeasures,
)


def window(
    rows: float | None, cpu: float | None, used: float | None = None, node_cpu: float | None = None
) -> Observation:
    instance = InstanceMeasures("n1", utilisation=used)
    work = OperatorMeasures(1, processed=rows, cpu_seconds=cpu, instances=(instance,))
    node = NodeMeasures("n1", slots=2, cores=4.0, cpu=node_cpu)
    return Observation(0.0, 10.0, {"work": work}, (node,), ApplicationMeasures())


def test_the_overhead_is_the_line_through_the_nodes_measured() -> None:
    profile = OverheadProfile()
    for used in (0.2, 0.5, 0.8):  # of a core; the node of 4 cores uses 0.4 + 1.5 times as much
        profile.learn(window(1.0, 1.0, used, (0.4 + 1.5 * used) / 4.0))
    overhead = profile.overhead()
    assert (overhead.idle, overhead.slope) == pytest.approx((0.4, 1.5))
    assert overhead.node_cpu(2.0) == pytest.approx(3.4)
    assert overhead.room(3.4) == pytest.approx(2.0)


def test_the_overhead_is_none_until_different_points_were_measured() -> None:
    profile = OverheadProfile()
    for _ in range(5):
        profile.learn(window(1.0, 1.0, 0.5, 0.9))
    assert profile.overhead() == Overhead()


def test_a_node_whose_cpu_was_not_measured_teaches_nothing() -> None:
    profile = OverheadProfile()
    profile.learn(window(1.0, 1.0, 0.5, None))
    profile.learn(window(1.0, 1.0, None, 0.5))
    assert profile.state == {"nodes": [0.0] * 5}


def test_a_profile_survives_as_json() -> None:
    profile = OverheadProfile()
    for used in (0.2, 0.5, 0.8):
        profile.learn(window(10.0, 1.0, used, used))
    again = OverheadProfile(json.loads(json.dumps(profile.state)))
    assert again.state == profile.state
    assert again.overhead() == profile.overhead()


def test_no_room_is_never_negative() -> None:
    assert Overhead(idle=2.0, slope=1.0).room(1.0) == 0.0


def test_utilisation_is_summed_per_node_where_measured() -> None:
    assert instance_utilisation(window(1.0, 1.0, 0.25)) == {"n1": 0.25}
    assert instance_utilisation(window(1.0, 1.0, None)) == {}


def test_instances_are_dealt_in_turn_and_idle_nodes_stay_empty() -> None:
    assert even_node_loads({"a": (2, 1.0), "b": (3, 0.5)}, 2).tolist() == [2.0, 1.5]
    assert even_node_loads({"a": (1, 1.0)}, 3).tolist() == [1.0, 0.0, 0.0]
