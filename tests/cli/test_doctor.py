"""What a user meets who lacks something."""

import json
from pathlib import Path

import pytest

from rheostat.cli.main import run
from rheostat.model.errors import UserError
from rheostat.services import cgroups
from rheostat.services.java import java_version, parse_version, spark_home


def doctor(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[object, str]:
    with pytest.raises(SystemExit) as ended:
        run(["doctor", *options])
    return ended.value.code, capsys.readouterr().out


@pytest.mark.jvm
def test_a_machine_with_everything_is_fine(capsys: pytest.CaptureFixture[str]) -> None:
    code, said = doctor(capsys)
    assert code == 0
    assert "ok   Java: version" in said
    assert "ok   Spark: pyspark 4.3" in said


def test_json_lists_every_check(capsys: pytest.CaptureFixture[str]) -> None:
    _, said = doctor(capsys, "--json")
    assert [finding["what"] for finding in json.loads(said)] == [
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
    code, said = doctor(capsys)
    assert code == 1
    assert "FAIL Java: no Java was found in JAVA_HOME: install Java 17" in said


def test_an_old_java_is_named_with_its_version(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(UserError, match="version 11, Spark 4 needs 17"):
        java_version()


def test_versions_are_read_as_java_prints_them() -> None:
    assert parse_version('openjdk version "21" 2023-09-19') == 21
    assert parse_version("no such thing") is None


def test_spark_home_is_preferred_to_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    with pytest.raises(UserError, match="holds no Spark: unset SPARK_HOME"):
        spark_home()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "spark-class").touch()
    assert spark_home() == tmp_path


@pytest.mark.jvm
def test_without_control_groups_it_only_notes_what_is_lost(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(cgroups, "_V1", tmp_path / "none")
    monkeypatch.setattr(cgroups, "_V2", tmp_path / "none")
    code, said = doctor(capsys)
    assert code == 0
    assert "note control groups: control groups cannot be used here" in said
    assert "nodes get no CPU quota" in said


@pytest.mark.jvm
def test_kafka_archives_that_are_not_cached_are_only_noted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    code, said = doctor(capsys)
    assert code == 0
    assert "note Kafka: kafka-broker-4.1.0 and spark-kafka-4.2.0 are not here yet" in " ".join(said.split())
    assert "`rheostat kafka fetch` gets them" in " ".join(said.split())
