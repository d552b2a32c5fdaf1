"""`rheostat bench` without Spark: bad options, and a map that is complete already."""

from pathlib import Path

import pytest

from rheostat.analyze.levels import LevelDocument
from rheostat.bench.application_map import DiscoveredMap
from tests.cli.commands import call, refused_at_once


@pytest.mark.parametrize(
    ("options", "message"),
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
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert message in refused_at_once(capsys, monkeypatch, tmp_path, "bench", *options)


def test_a_complete_map_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    level = LevelDocument(load=9000, parallelism={"split": 2}, nodes=1)
    options_made = {"node": "cores=1", "mode": "microbatch", "trigger": "3", "partitions": "4"}
    options_made |= {"containers": "slot+node", "health": "0.9"}
    DiscoveredMap.open(Path("ddos.map.yaml"), "ddos", options_made).add(level)
    options = ("ddos", "--from", "1000", "--to", "9000", "--step", "1000", "--node", "cores=1")
    assert call("bench", "app", *options) == 0
    output = capsys.readouterr().out
    assert "9,000" in output and "multilevel(map=ddos.map.yaml)" in output
