from rheostat.engines.simulator.placement import Placed, place
from rheostat.model.configuration import NodeKind
from rheostat.model.decision import Placement
from rheostat.model.node import Node


def nodes(*slots: int) -> list[Node]:
    return [Node(f"n{i + 1}", NodeKind(cores=count, slots=count)) for i, count in enumerate(slots)]


def count(hosts: Placed, operator: str) -> int:
    return sum(here.get(operator, 0) for here in hosts.values())


def test_instances_are_dealt_evenly_over_equal_nodes() -> None:
    hosts = place({}, {"a": 3, "b": 1}, nodes(2, 2), Placement())
    assert hosts == {"n1": {"a": 2}, "n2": {"a": 1, "b": 1}}


def test_a_node_with_more_slots_gets_more_instances() -> None:
    hosts = place({}, {"a": 6}, nodes(4, 2), Placement())
    assert hosts == {"n1": {"a": 4}, "n2": {"a": 2}}


def test_scale_out_moves_nothing_that_runs() -> None:
    before = {"n1": {"a": 2}, "n2": {"b": 1}}
    hosts = place(before, {"a": 3, "b": 1}, nodes(2, 2, 2), Placement(keep=True))
    assert hosts == {"n1": {"a": 2}, "n2": {"b": 1}, "n3": {"a": 1}}


def test_scale_in_frees_the_last_node_first() -> None:
    before = {"n1": {"a": 2}, "n2": {"a": 1, "b": 1}}
    hosts = place(before, {"a": 2, "b": 1}, nodes(2, 2), Placement(keep=True))
    assert hosts == {"n1": {"a": 2}, "n2": {"b": 1}}


def test_a_new_instance_goes_to_the_least_loaded_node_with_a_free_slot() -> None:
    before = {"n1": {"heavy": 1}, "n2": {"light": 1}}
    weights = {"heavy": 1.0, "light": 0.1}
    hosts = place(before, {"heavy": 2, "light": 1}, nodes(2, 2), Placement(keep=True), frozenset(), weights)
    assert hosts["n2"] == {"light": 1, "heavy": 1}


def test_requested_placements_are_honoured() -> None:
    before = {"n1": {"a": 1}, "n2": {"a": 1}}
    wishes = Placement(put=(("a", "n3"),), take=(("a", "n1"),), keep=True)
    assert place(before, {"a": 2}, nodes(2, 2, 2), wishes) == {"n1": {}, "n2": {"a": 1}, "n3": {"a": 1}}


def test_instances_of_a_removed_node_find_another_place() -> None:
    before = {"n1": {"a": 1}, "n2": {"a": 1, "b": 1}}
    hosts = place(before, {"a": 2, "b": 1}, nodes(4, 4), Placement(remove=("n2",), keep=True))
    assert hosts == {"n1": {"a": 2, "b": 1}}


def test_hidden_nodes_get_no_new_instances() -> None:
    hosts = place({"n1": {}, "n2": {"a": 1}}, {"a": 2}, nodes(2, 2), Placement(keep=True), frozenset({"n1"}))
    assert (hosts["n1"], count(hosts, "a")) == ({}, 2)
