import json
from pathlib import Path
from typing import Any

import pytest

from rheostat.analyze.execution import Pipelined, Staged, Storm
from rheostat.analyze.levels import Level, derive_level, load_map, read_map
from rheostat.model.configuration import NodeKind
from rheostat.model.errors import FileError

TWO = NodeKind(cores=2, slots=2)


def write(folder: Path, *levels: dict[str, Any]) -> Path:
    path = folder / "map.json"
    path.write_text(json.dumps({"application": "words", "levels": list(levels)}))
    return path


def test_a_map_file_gives_its_levels(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        {"load": 100, "parallelism": {"a": 1}, "nodes": 1},
        {"load": 200, "parallelism": {"a": 3}, "nodes": 2},
    )
    assert load_map(path) == (Level(100.0, {"a": 1}, 1), Level(200.0, {"a": 3}, 2))


def test_the_example_map_can_be_read() -> None:
    made = read_map(Path(__file__).parents[2] / "examples" / "maps" / "ddos.yaml")
    assert made.application == "ddos"


@pytest.mark.parametrize(
    ("levels", "said"),
    [
        ([], "key 'levels'"),
        ([{"load": 0, "parallelism": {}, "nodes": 1}], "levels number 1, key 'load'"),
        ([{"load": 1, "parallelism": {}, "nodes": 0}], "levels number 1, key 'nodes'"),
        ([{"load": 1, "nodes": 1}], "key 'parallelism': field required"),
        ([{"load": 1, "parallelism": {}, "nodes": 1, "node": 2}], "unknown key; did you mean 'nodes'?"),
        (
            [{"load": 2, "parallelism": {}, "nodes": 1}, {"load": 2, "parallelism": {}, "nodes": 2}],
            "levels must rise: 2 comes after 2",
        ),
        (
            [
                {"load": 1, "parallelism": {"a": 1}, "nodes": 1},
                {"load": 2, "parallelism": {"a": 1, "b": 1}, "nodes": 1},
            ],
            "'b' is not in every level's parallelism",
        ),
    ],
)
def test_an_impossible_map_is_refused(tmp_path: Path, levels: list[dict[str, Any]], said: str) -> None:
    with pytest.raises(FileError) as refused:
        load_map(write(tmp_path, *levels))
    assert said in str(refused.value)


def test_a_staged_level_is_a_number_of_slots() -> None:
    # 1 + 2 busy slots in the 0.9 - 2 * 0.5/10 of the interval that overheads leave: 4 slots on 2 nodes
    level = derive_level(100.0, {"a": 0.01, "b": 0.02}, Staged(10.0, 0.5), TWO, target=0.9, node_limit=0.9)
    assert level == Level(100.0, {"a": 4, "b": 4}, 2)


def test_a_staged_level_knows_that_four_tasks_do_not_divide_by_three_nodes() -> None:
    model = Staged(5.0, 0.2, pinned={"b": 4}, node_slots=2, alone=2.0)
    nodes = [
        derive_level(load, {"a": 0.001, "b": 0.003}, model, TWO, target=0.9, node_limit=0.9).nodes
        for load in (200, 300, 600, 800, 900, 1_300)
    ]
    assert nodes == [1, 1, 2, 2, 4, 4]


@pytest.mark.parametrize("load", [10.0, 500.0, 1000.0, 3000.0, 10_000.0])
def test_a_pipelined_level_has_a_slot_for_every_instance(load: float) -> None:
    per_row = {"a": 0.001, "b": 0.002, "c": 0.0005}
    level = derive_level(load, per_row, Pipelined(), TWO, target=0.9, node_limit=0.9)
    assert sum(level.parallelism.values()) <= level.nodes * TWO.slots
    assert all(load * per_row[name] / count <= 0.9 + 1e-9 for name, count in level.parallelism.items())


def test_machines_only_means_one_node_for_every_further_instance() -> None:
    level = derive_level(2000.0, {"a": 0.001}, Storm(), TWO, target=1.0, node_limit=0.9, nodes_only=True)
    assert level == Level(2000.0, {"a": 2}, 2)


def test_a_higher_load_never_needs_fewer_instances() -> None:
    levels = [
        derive_level(load, {"a": 0.001, "b": 0.003}, Storm(), TWO, target=0.9, node_limit=0.9)
        for load in range(100, 6000, 100)
    ]
    instances = [sum(level.parallelism.values()) for level in levels]
    assert instances == sorted(instances)
    assert instances[0] == 2  # one of each
    assert instances[-1] >= 7 + 20  # 5.9 and 17.7 slots busy, at 90 %; full nodes may ask for more
