"""The baseline: a first configuration, and then nothing."""

from dataclasses import replace

import pytest

from rheostat.analyze.execution import ExecutionModel, Pipelined, Staged
from rheostat.model.configuration import Bounds, NodeKind
from rheostat.policies.base import Start
from rheostat.policies.example import WORDS, situation
from rheostat.policies.static import Static


def start(model: ExecutionModel, bounds: Bounds = Bounds(1, 20)) -> Start:
    return Start(WORDS, model, (NodeKind(cores=2, slots=2),), bounds, first_load=1_000, peak_load=8_000)


@pytest.mark.parametrize(
    ("provision", "counts", "nodes"),
    [
        # At 80 % utilisation 8,000 rows/s take 0.8, 4 and 3.2 busy slots; 1,000 take an eighth of that.
        ("peak", (1, 5, 4), 5),
        ("first", (1, 1, 1), 2),
        ("min", (1, 1, 1), 2),
    ],
)
def test_the_first_configuration_fits_the_chosen_load(
    provision: str, counts: tuple[int, int, int], nodes: int
) -> None:
    first = Static(provision=provision).initial(start(Pipelined()))
    assert tuple(first.parallelism.values()) == counts
    assert first.nodes == first.executors == nodes


def test_stages_share_their_slots_at_the_peak() -> None:
    # 8 busy slots in 0.8 - 3 x 0.01 of the interval: 10.4 slots.
    first = Static().initial(start(Staged(10.0, 0.1)))
    assert set(first.parallelism.values()) == {11}
    assert first.nodes == 6


def test_all_slots_of_the_most_nodes_are_shared_evenly() -> None:
    held = Static(provision="slots").initial(start(Pipelined(reserved=1), Bounds(1, 4)))
    assert sorted(held.parallelism.values()) == [2, 2, 3]  # 7 of 8, one is reserved
    assert held.nodes == held.executors == 4
    shared = Static(provision="slots").initial(start(Staged(), Bounds(1, 4)))
    assert set(shared.parallelism.values()) == {8}


def test_an_operator_that_may_not_grow_leaves_its_slots_to_the_others() -> None:
    pinned = replace(WORDS.operators[0], max_parallelism=1)
    words = replace(WORDS, operators=(pinned, *WORDS.operators[1:]))
    first = Static(provision="slots").initial(replace(start(Pipelined(), Bounds(1, 4)), topology=words))
    assert sorted(first.parallelism.values()) == [1, 3, 4]


def test_the_bounds_hold_for_the_first_configuration_too() -> None:
    assert Static().initial(start(Pipelined(), Bounds(1, 3))).nodes == 3
    assert Static(provision="min").initial(start(Pipelined(), Bounds(4, 9))).nodes == 4


def test_it_never_changes_anything() -> None:
    for load in (0.0, 1_000.0, 100_000.0):
        seen = situation(load=load)
        proposal, memory = Static().decide(seen, {"kept": 1})
        assert not proposal.changes(seen.configuration)
        assert memory == {"kept": 1}


def test_an_unknown_provision_is_refused() -> None:
    with pytest.raises(ValueError, match="peak, first, min or slots"):
        Static(provision="mean")
