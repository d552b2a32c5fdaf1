"""The benchmark procedure without Spark: levels, maps that grow and resume, conclusions, bad options."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from rheostat.analyze.levels import Level, LevelDocument, PlatformDocument, load_map
from rheostat.bench.application_map import DiscoveredMap, judge_level, levels
from rheostat.bench.platform import Setup, conclude, questions
from rheostat.control.turn import Turn
from rheostat.model.decision import Status
from rheostat.model.documents import parse, read_document, write_document
from rheostat.model.errors import FileError, RheostatError, UserError
from rheostat.policies.discovery import Discovery
from rheostat.policies.registry import build
from rheostat.run.order import Order
from tests.cli.commands import call, refused_at_once

MADE = {"node": "cores=1", "mode": "microbatch"}
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


def test_a_level_is_served_by_what_its_last_look_saw_healthy() -> None:
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
    found = DiscoveredMap.open(path, "app", MADE)
    assert found.offered == 0.0 and not path.exists()
    found.add(level(1000, 1, 1))
    found.add(level(2000, 1, 1))  # needs no more: one level, with a higher limit
    found.add(level(3000, 3, 2, 3300))  # its source made fewer rows of what was offered
    assert load_map(path) == (Level(2000, {"split": 1}, 1), Level(3000, {"split": 3}, 2))
    with pytest.raises(RheostatError, match=r"3,500 rows/s: 2,999.0 came, after 3,000.0 at the level below"):
        found.add(level(2999, 4, 2, 3500))
    found.add(level(2990, 3, 2, 3300))  # what was served once is not taken back
    assert load_map(path)[-1] == Level(3000, {"split": 3}, 2)
    build(f"multilevel(map={path})")
    again = DiscoveredMap.open(path, "app", MADE)
    assert again.offered == 3300
    with pytest.raises(UserError, match="made with other options"):
        DiscoveredMap.open(path, "app", {**MADE, "mode": "realtime"})
    assert [file.name for file in path.parent.iterdir()] == ["app.map.yaml"]


def test_what_this_machine_shows_decides_the_order_of_containers(tmp_path: Path) -> None:
    asked = questions(2)
    setups = {setup for question in asked for setup in question.setups}
    alike = dict.fromkeys(setups, 100.0)
    assert conclude(asked, alike, 2.0).containers == "node"
    helps = {**alike, Setup(2, 1, 1): 190.0, Setup(4, 1, 1): 195.0, Setup(4, 4, 1): 120.0}
    found = conclude(asked, helps, 2.0)
    assert (found.containers, found.node) == ("slot+node", "cores=2,slots=4,executors=1")
    assert asked[1].answer(helps) == "more slots per executor help (2: +90%, 4: +95% against 1)"
    assert asked[2].answer(helps) == "more executors per node harm (2: -49%, 4: -38% against 1)"
    assert asked[0].answer(alike) == "more partitions per slot change nothing (2: +0%, 4: +0% against 1)"
    path = tmp_path / "platform.yaml"
    write_document(path, found)
    assert parse(PlatformDocument, read_document(path), path) == found
    build(f"multilevel(platform={path})")


def test_a_platform_file_that_makes_no_sense_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "platform.yaml"
    path.write_text(yaml.safe_dump({"containers": "cloud"}))
    with pytest.raises(FileError, match="'containers': input should be 'slot\\+node' or 'node'"):
        build(f"multilevel(platform={path})")
    path.write_text(yaml.safe_dump({"container": "node"}))
    with pytest.raises(FileError, match="containers"):
        build(f"multilevel(platform={path})")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("app", "ddos", "--from", "0", "--to", "10", "--step", "1"), "--from must be above 0"),
        (
            ("app", "ddos", "--from", "1", "--to", "10", "--step", "1", "--hold", "20"),
            "--hold must be at least 40",
        ),
        (("app", "ddoss", "--from", "1", "--to", "10", "--step", "1"), "ddos"),
        (
            ("app", "ddos", "--from", "1", "--to", "9", "--step", "1", "--platform", "none"),
            "none: cannot be read",
        ),
        (("app", "ddos", "--from", "1", "--to", "10", "--step", "inf"), "--step above 0"),
        (("app", "no.py", "--from", "1", "--to", "10", "--step", "1"), "no such script"),
        (
            ("app", "ddos", "--from", "1", "--to", "10", "--step", "1", "--kafka", "127.0.0.1:1"),
            "no Kafka broker answers at 127.0.0.1:1",
        ),
        (("platform", "--seconds", "1"), "--seconds must be at least 10"),
        (("platform", "--cores", "0"), "--cores must be at least"),
    ],
)
def test_bad_options_are_refused_and_nothing_is_made(
    options: tuple[str, ...],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert said in refused_at_once(capsys, monkeypatch, tmp_path, "bench", *options)


def test_a_map_that_is_complete_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    made = {"node": "cores=1", "mode": "microbatch", "trigger": "3", "partitions": "4"}
    made |= {"containers": "slot+node", "health": "0.9"}
    DiscoveredMap.open(Path("ddos.map.yaml"), "ddos", made).add(level(9000, 2, 1))
    options = ("ddos", "--from", "1000", "--to", "9000", "--step", "1000", "--node", "cores=1")
    assert call("bench", "app", *options) == 0
    told = capsys.readouterr().out
    assert "9,000" in told and "multilevel(map=ddos.map.yaml)" in told
