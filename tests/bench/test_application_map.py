"""The map of an application without Spark: its levels, and how it grows and resumes."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rheostat.analyze.levels import Level, LevelDocument, load_map
from rheostat.bench.application_map import DiscoveredMap, judge_level, levels
from rheostat.control.turn import Turn
from rheostat.model.decision import Status
from rheostat.model.errors import RheostatError, UserError
from rheostat.policies.discovery import Discovery
from rheostat.policies.registry import build
from rheostat.run.order import Order

OPTIONS = {"node": "cores=1", "mode": "microbatch"}
ORDER = Order("app", Path("app.py"), Discovery(), "discovery", Path())


@dataclass
class _Turn:
    """What `judge_level` looks at of a turn."""

    health: float = 1.0
    changes: bool = False
    missing: tuple[str, ...] = ()
    nodes: int = 2
    vetoes: tuple[str, ...] = ()
    reason: str = "all is well"
    parallelism: dict[str, int] = field(default_factory=lambda: {"split": 4})
    status: Status = Status.UNCHANGED
    total_load: float = 450.0
    outcome: Any = None
    observation: Any = None
    plan: Any = None
    evaluation: Any = None

    def __post_init__(self) -> None:
        self.plan = self.evaluation = self.current = self.outcome = self.observation = self
        self.operators = {"split": self}


def level(load: float, split: int, nodes: int, offered: float | None = None) -> LevelDocument:
    return LevelDocument(load=load, parallelism={"split": split}, nodes=nodes, offered=offered)


def turns(*given: _Turn) -> list[Turn]:
    return list(given)  # type: ignore[arg-type]


def test_levels_rise_to_the_last_one() -> None:
    assert levels(100, 450, 100) == [100, 200, 300, 400]
    with pytest.raises(UserError, match="larger --step"):
        levels(1, 1e6, 1)
    with pytest.raises(UserError, match="--from must be above 0"):
        levels(0, 10, 1)


def test_a_level_is_served_by_the_last_configuration_observed_healthy() -> None:
    assert judge_level(500, turns(_Turn(health=0.5, changes=True), _Turn()), ORDER) == level(450, 4, 2, 500)
    assert judge_level(500, turns(_Turn(), _Turn(missing=("load",))), ORDER).nodes == 2
    for looks, why in (
        ([], "nothing was measured"),
        ([_Turn(), _Turn(health=0.5, changes=True)], "still being scaled"),
        ([_Turn(changes=True, status=Status.FAILED, reason="no room")], "500 rows/s: no room"),
        (
            [_Turn(health=0.5, vetoes=("at most 2 nodes",))],
            r"split is congested \(health 0.50\) on 2 nodes: at most",
        ),
    ):
        with pytest.raises(RheostatError, match=why):
            judge_level(500, turns(*looks), ORDER)


def test_a_map_grows_resumes_and_is_what_multilevel_reads(tmp_path: Path) -> None:
    path = tmp_path / "maps" / "app.map.yaml"
    result = DiscoveredMap.open(path, "app", OPTIONS)
    assert result.offered == 0.0 and not path.exists()
    result.add(level(1000, 1, 1))
    result.add(level(2000, 1, 1))  # needs no more: one level, with a higher limit
    result.add(level(3000, 3, 2, 3300))  # its source made fewer rows of what was offered
    assert load_map(path) == (Level(2000, {"split": 1}, 1), Level(3000, {"split": 3}, 2))
    with pytest.raises(
        RheostatError, match=r"3,500 rows/s: only 2,999.0 arrived, after 3,000.0 at the level below"
    ):
        result.add(level(2999, 4, 2, 3500))
    result.add(level(2990, 3, 2, 3300))  # what was served once is not taken back
    assert load_map(path)[-1] == Level(3000, {"split": 3}, 2)
    build(f"multilevel(map={path})")
    again = DiscoveredMap.open(path, "app", OPTIONS)
    assert again.offered == 3300
    with pytest.raises(UserError, match="made with other options"):
        DiscoveredMap.open(path, "app", {**OPTIONS, "mode": "realtime"})
    assert [file.name for file in path.parent.iterdir()] == ["app.map.yaml"]
