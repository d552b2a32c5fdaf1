"""`rheostat doctor` on machines that lack something."""

import json
from pathlib import Path

import pytest

from rheostat.cli.main import run
from rheostat.services import cgroups


def doctor(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[object, str]:
    with pytest.raises(SystemExit) as ended:
        run(["doctor", *options])
    return ended.value.code, capsys.readouterr().out


@pytest.mark.jvm
def test_a_machine_with_everything_is_fine(capsys: pytest.CaptureFixture[str]) -> None:
    code, message = doctor(capsys)
    assert code == 0
    assert "ok   Java: version" in message
    assert "ok   Spark: pyspark 4.3" in message


def test_json_lists_every_check(capsys: pytest.CaptureFixture[str]) -> None:
    _, message = doctor(capsys, "--json")
    assert [finding["what"] for finding in json.loads(message)] == [
        "Java",
        "Spark",
        "control groups",
        "ports",
        "memory",
        "Kafka",
    ]


def test_without_java_it_says_how_to_install_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    code, message = doctor(capsys)
    assert code == 1
    assert "FAIL Java: no Java was found in JAVA_HOME: install Java 17" in message


@pytest.mark.jvm
def test_without_control_groups_it_only_notes_what_is_lost(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(cgroups, "_V1", tmp_path / "none")
    monkeypatch.setattr(cgroups, "_V2", tmp_path / "none")
    code, message = doctor(capsys)
    assert code == 0
    assert "note control groups: control groups cannot be used here" in message
    assert "nodes get no CPU quota" in message


@pytest.mark.jvm
def test_kafka_archives_that_are_not_cached_are_optional(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    code, message = doctor(capsys)
    assert code == 0
    assert "note Kafka: missing: kafka-broker-4.1.0 and spark-kafka-4.2.0;" in " ".join(message.split())
    assert "`rheostat kafka fetch` downloads them" in " ".join(message.split())
