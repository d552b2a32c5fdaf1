"""`rheostat tune` in the simulator."""

import json

import pytest

from rheostat.cli.main import run
from rheostat.policies.registry import build

WORLD = ("-t", "topk", "-c", "stair:duration=20m:noise=poisson", "-m", "storm", "--nodes", "1:4",
         "--node", "cores=4,slots=4,startup_seconds=0", "--episodes", "20")  # fmt: skip


def call(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        run(["tune", *arguments])
    return int(ended.value.code or 0)


def test_it_names_a_policy_that_can_be_built_and_every_value_was_tried(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert call(*WORLD, "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert build(answer["policy"]).info.name == "elysium"
    for threshold in answer["thresholds"]:
        assert all(tried["episodes"] >= 1 for tried in threshold["tried"])
        for tried in threshold["tried"]:
            assert tried["reward"] == pytest.approx(tried["value"] - tried["degradation"])


def test_the_papers_table_stands_beside_ours(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(*WORLD) == 0
    shown = capsys.readouterr().out
    assert "simulated" in shown
    assert "0.71" in shown  # of 0.80, the paper's best
    assert "the paper: elysium(cpu_max_thr=0.8,core_max_thr=0.65,core_min_thr=0.25)" in shown


def test_too_few_episodes_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(*WORLD[:-1], "5") == 2
    assert "20" in capsys.readouterr().err
