import pytest

from rheostat.model.configuration import Bounds, Configuration, NodeKind
from rheostat.model.decision import Cause, Placement, Proposal
from rheostat.model.errors import UserError
from rheostat.model.observation import ApplicationMeasures, Observation
from rheostat.model.topology import Operator, Stream, Topology

DIAMOND = Topology(
    "diamond",
    (Operator("sink"), Operator("left"), Operator("source"), Operator("right")),
    (
        Stream("source", "left", 4.0, 0.25),
        Stream("source", "right", 4.0, 0.75),
        Stream("left", "sink"),
        Stream("right", "sink"),
    ),
)


def test_roles_follow_from_the_streams() -> None:
    assert DIAMOND.sources == ("source",)
    assert DIAMOND.sinks == ("sink",)
    assert [DIAMOND.role(name) for name in DIAMOND.names] == ["sink", "operator", "source", "operator"]


def test_an_operator_without_streams_is_a_source_and_a_sink() -> None:
    alone = Topology("alone", (Operator("one"),))
    assert alone.sources == alone.sinks == alone.order == ("one",)
    assert alone.role("one") == "source"


def test_the_order_goes_down_and_names_stay_as_stated() -> None:
    assert DIAMOND.names == ("sink", "left", "source", "right")
    assert DIAMOND.order[0] == "source"
    assert DIAMOND.order[-1] == "sink"


def test_depth_is_the_longest_way_from_a_source() -> None:
    shortcut = Topology(
        "s",
        (Operator("a"), Operator("b"), Operator("c")),
        (Stream("a", "c", share=0.5), Stream("a", "b", share=0.5), Stream("b", "c")),
    )
    assert shortcut.depth == {"a": 0, "b": 1, "c": 2}


def test_rows_on_a_stream_are_selectivity_times_share() -> None:
    assert [stream.rows_per_row for stream in DIAMOND.outputs["source"]] == [1.0, 3.0]
    assert [stream.upstream for stream in DIAMOND.inputs["sink"]] == ["left", "right"]


@pytest.mark.parametrize(
    ("operators", "streams", "said"),
    [
        ((), (), "there is no operator"),
        (("a", "a"), (), "operator 'a' is stated twice"),
        (("a",), (Stream("x", "a"),), "a stream comes from 'x', which does not exist"),
        (("a",), (Stream("a", "x"),), "operator 'a' sends to 'x', which does not exist"),
        (("a", "b"), (Stream("a", "b"), Stream("a", "b")), "operator 'a' has two streams to 'b'"),
        (("a", "b"), (Stream("a", "b", share=1.5),), "operator 'a': its shares add up to 1.5"),
        (("a", "b"), (Stream("a", "b"), Stream("b", "a")), "in a cycle"),
    ],
)
def test_an_impossible_topology_cannot_be_made(
    operators: tuple[str, ...], streams: tuple[Stream, ...], said: str
) -> None:
    with pytest.raises(UserError, match=said):
        Topology("t", tuple(Operator(name) for name in operators), streams)


@pytest.mark.parametrize("name", ["", "\x1b[2J", "a\nb"])
def test_a_topology_needs_a_name_that_can_be_printed(name: str) -> None:
    with pytest.raises(UserError, match="topology"):
        Topology(name, (Operator("a"),))


def test_a_slot_offers_its_part_of_the_cores() -> None:
    assert NodeKind(cores=3, slots=2).slot_cores == 1.5


def test_bounds_bring_nodes_and_parallelism_within() -> None:
    topology = Topology(
        "t", (Operator("a", min_parallelism=2, max_parallelism=4), Operator("b")), (Stream("a", "b"),)
    )
    bounds = Bounds(2, 5)
    assert [bounds.nodes(n) for n in (0, 2, 3, 9)] == [2, 2, 3, 5]
    assert bounds.parallelism(topology, {"a": 9, "b": 0}) == {"a": 4, "b": 1}
    assert bounds.parallelism(topology, {"unknown": 3}) == {"a": 2, "b": 1}


def test_a_configuration_says_what_changed() -> None:
    before = Configuration({"a": 1, "b": 1}, 1, 1)
    assert (
        Configuration({"a": 1, "b": 3}, 2, 2).describe(before) == "b 1 -> 3, executors 1 -> 2, nodes 1 -> 2"
    )
    assert before.describe(before) == "no change"
    many = Configuration({f"o{n}": 2 for n in range(20)}, 1, 1)
    assert many.describe(Configuration({f"o{n}": 1 for n in range(20)}, 1, 1)).endswith(
        "o6 1 -> 2, and 13 more"
    )
    assert many.instances == 40


@pytest.mark.parametrize(
    ("relation", "holds"), [("<", False), ("<=", True), (">", False), (">=", True), ("==", True)]
)
def test_a_cause_can_be_checked(relation: str, holds: bool) -> None:
    assert Cause("load", "a", 2.0, relation, 2.0).holds() is holds  # type: ignore[arg-type]


def test_a_proposal_changes_something_when_its_target_or_its_places_do() -> None:
    now = Configuration({"a": 1}, 1, 1)
    assert not Proposal(now, "hold", placement=Placement(hide=("n1",), keep=True)).changes(now)
    assert Proposal(Configuration({"a": 2}, 1, 1), "more").changes(now)
    assert Proposal(now, "move", placement=Placement(put=(("a", "n2"),))).changes(now)


def test_the_total_load_is_unknown_when_one_source_is() -> None:
    def total(**load: float | None) -> float | None:
        return Observation(0.0, 10.0, {}, (), ApplicationMeasures(load=load)).total_load

    assert total(a=1.0, b=2.0) == 3.0
    assert total(a=0.0) == 0.0
    assert total(a=1.0, b=None) is None
    assert total() is None
