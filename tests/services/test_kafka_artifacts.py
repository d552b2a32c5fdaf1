"""Java archives are fetched once, and a user who cannot fetch them is told what to do."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from rheostat.model.errors import UserError
from rheostat.services import kafka_broker, maven

SMALL = maven.Bundle("small", ("org.slf4j:slf4j-api:1.7.36",), False, "do without")
FETCH = """
from rheostat.services.maven import Bundle, resolve
resolve(Bundle("small", ("org.slf4j:slf4j-api:1.7.36",), False, ""), print)
"""


@pytest.mark.jvm
def test_the_connector_is_four_archives() -> None:
    assert [path.name for path in kafka_broker.connector_jars()] == [
        "commons-pool2-2.12.1.jar",
        "kafka-clients-3.9.1.jar",
        "spark-sql-kafka-0-10_2.13-4.2.0.jar",
        "spark-token-provider-kafka-0-10_2.13-4.0.0.jar",
    ]


@pytest.mark.jvm
def test_only_one_of_two_processes_downloads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    both = [
        subprocess.Popen([sys.executable, "-c", FETCH], stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    message = "".join(process.communicate(timeout=120)[0] for process in both)
    assert [process.returncode for process in both] == [0, 0]
    assert message.count("downloading small from Maven Central") == 1
    assert [path.name for path in SMALL.cached()] == ["slf4j-api-1.7.36.jar"]
    assert not (SMALL.folder.parent / "downloads").exists()


def test_archives_put_there_by_hand_are_used_without_java(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "none"))
    with pytest.raises(UserError, match="no Java was found"):
        maven.resolve(SMALL)
    SMALL.folder.mkdir(parents=True)
    (SMALL.folder / "by-hand.jar").touch()
    assert maven.resolve(SMALL) == (SMALL.folder / "by-hand.jar",)


@pytest.mark.jvm
def test_a_failed_download_names_the_alternatives(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    missing = maven.Bundle("missing", ("org.example.rheostat:no-such-thing:1",), False, "use another")
    with pytest.raises(UserError) as output:
        maven.resolve(missing)
    assert re.search(
        r"missing cannot be downloaded from Maven Central \(.*no-such-thing.*\); put the jars",
        str(output.value),
    )
    assert f"into {missing.folder}, or use another" in str(output.value)
    assert not missing.folder.exists()


def test_a_cache_that_cannot_be_written_is_a_user_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(UserError, match="Not a directory"):
        maven.resolve(SMALL)
