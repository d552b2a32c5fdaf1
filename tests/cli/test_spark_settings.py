"""Spark's settings on the command line."""

from pathlib import Path

import pytest

from rheostat.cli import spark_settings
from tests.cli.commands import refused, refused_at_once

COMMANDS = (
    ("run", "demo"),
    ("trial", "-a", "wordcount", "-c", "sine", "-p", "ds2"),
    ("bench", "app", "linear", "--from", "20", "--to", "40", "--step", "20"),
    ("cluster",),
)
SECRETS = (
    "spark.authenticate.secret",
    "spark.ssl.keyPassword",
    "spark.hadoop.fs.s3a.access.key",
    "spark.rheostat.kafka.sasl.jaas.config",
    "spark.hadoop.fs.azure.account.key.store.dfs.core.windows.net",
    "spark.hadoop.fs.azure.sas.container.store",
    "spark.hadoop.some.private.key",
    "spark.sql.catalog.c.credential",
)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("key", SECRETS)
def test_a_secret_on_the_command_line_is_refused(
    command: tuple[str, ...],
    key: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    output = refused_at_once(capsys, monkeypatch, tmp_path, *command, "--conf", f"{key}=hunter2")
    assert f"--conf {key}: " in output and "--conf-file" in output
    assert "hunter2" not in output


@pytest.mark.parametrize(
    "pair",
    [
        "spark.executor.extraJavaOptions=-Djavax.net.ssl.keyStorePassword=hunter2",
        "spark.sql.catalog.c.url=jdbc:postgresql://db/x?user=me&password=hunter2",
    ],
)
def test_a_secret_within_a_value_is_refused_too(pair: str, capsys: pytest.CaptureFixture[str]) -> None:
    output = refused(capsys, "run", "demo", "--conf", pair)
    assert "--conf-file" in output and "hunter2" not in output


@pytest.mark.parametrize(
    "pair",
    [
        "spark.ssl.keyStore=/etc/keys",
        "spark.hadoop.fs.s3a.aws.credentials.provider=com.example.Provider",
        "spark.executor.memory=1g",
    ],
)
def test_a_setting_without_a_secret_is_accepted(pair: str) -> None:
    assert spark_settings.read([pair], None) == dict([pair.split("=")])


def test_a_secret_in_a_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "spark.conf"
    file.touch(mode=0o600)
    file.write_text("spark.authenticate.secret hunter2\n")
    given = spark_settings.read(["spark.authenticate=true"], file)
    assert given == {"spark.authenticate.secret": "hunter2", "spark.authenticate": "true"}
