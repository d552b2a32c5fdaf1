"""A trial's runs and the benchmark procedure on real Spark; short, as their parts have their own tests."""

from pathlib import Path

import pytest
import yaml

from rheostat.apps.shipped import find_script
from rheostat.bench.platform import Setup, capacity_of
from rheostat.journal.reader import JournalReader
from rheostat.model.configuration import Bounds, NodeKind
from rheostat.trials.contestant_run import run_contestant
from rheostat.trials.contestants import contestant
from rheostat.trials.trial import Trial
from tests.cli.commands import call

LOAD, SECONDS = 110.0, 40  # rows/s of 5.4 ms each: more than one node of half a core can do


def test_sparks_dynamic_allocation_scales_by_itself_and_is_measured(tmp_path: Path) -> None:
    trial = Trial(
        app="linear",
        script=find_script("linear"),
        curve=f"constant:rate={LOAD:g}:duration={SECONDS}",
        seed=0,
        nodes=Bounds(1, 2),
        node=NodeKind(cores=0.5, slots=2, memory_mb=1024),
        mode="microbatch",
        trigger_seconds=2.0,
        period_seconds=5.0,
        cooldown_seconds=0.0,
        warm_up_seconds=0.0,
        partitions=2,
    )
    messages: list[str] = []
    result = run_contestant(trial, contestant("spark-dra"), 1, tmp_path / "run", messages.append)
    assert result.failure == ""
    assert (result.nodes[0], max(result.nodes)) == (1, 2)  # Spark asked for another executor, nobody else did
    assert result.changes == 1
    assert sum(result.load) == pytest.approx(SECONDS * LOAD, rel=0.01)
    assert SECONDS / 4 * LOAD < sum(result.throughput) <= SECONDS * LOAD
    assert 2.0 <= max(result.lag) < SECONDS  # no row is done before its trigger
    assert any("s left, 2 nodes" in text for text in messages)
    with JournalReader(tmp_path / "run" / "journal.sqlite") as journal:
        assert journal.facts()["policy"] == "spark-dra"
        assert {turn.plan.changes for turn in journal.turns()} == {False}


@pytest.mark.long
def test_an_application_is_benchmarked_level_by_level(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    levels = ("--from", "10", "--to", "20", "--step", "10", "--hold", "12", "--period", "3")
    patient = ("--trigger", "3", "--min-health", "0.5")  # the machine may be busy
    node = ("--node", "cores=1,slots=2,memory_mb=1024", "--nodes", "1:1", "--partitions", "2")
    assert call("bench", "app", "linear", *levels, *patient, *node) == 0
    output = capsys.readouterr().out
    assert "10 rows/s: 1 node" in output and "20 rows/s: 1 node" in output
    made = yaml.safe_load(Path("linear.map.yaml").read_text())
    assert made["application"] == "linear"
    [level] = made["levels"]
    assert (level["offered"], level["nodes"]) == (20.0, 1)
    assert level["load"] == pytest.approx(20, rel=0.3)
    assert list(level["parallelism"]) == ["source", "intermediate", "sink"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["linear.map.yaml"]


@pytest.mark.long
def test_the_capacity_of_a_node_is_what_it_serves_when_it_is_flooded() -> None:
    parts: list[float] = []
    results = capacity_of(Setup(slots=2, executors=1, partitions=1), 1.0, 5.0, parts.append)
    assert 20 < results < 185 * 1.5  # one core does 185 rows/s at the topology's costs, about
    assert parts[-1] == 1.0
