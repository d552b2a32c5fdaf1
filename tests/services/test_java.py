"""Finding Java and Spark on this machine."""

from pathlib import Path

import pytest

from rheostat.model.errors import UserError
from rheostat.services.java import java_version, parse_version, spark_home


def test_an_old_java_is_refused_with_its_version(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
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
