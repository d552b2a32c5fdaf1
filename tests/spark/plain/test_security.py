"""Nothing of a run listens beyond this machine, strangers are refused, and secrets are seen nowhere."""

import re
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path
from subprocess import STDOUT, Popen

import psutil
import pytest

from rheostat.run.folder import JOURNAL
from tests.cli.commands import RHEOSTAT
from tests.spark.controllers import Controller, eventually

from .state import MARK, SETTINGS, at, commands, fall_into_the_trap, has_fallen, holding

MASTER = re.compile(r"spark://127\.0\.0\.1:\d+$")
LOOPBACK = ("127.0.0.1", "::1", "::ffff:127.0.0.1")
STRANGER = """
import sys
from pyspark.sql import SparkSession
builder = SparkSession.builder.master(sys.argv[1]).config("spark.driver.host", "127.0.0.1")
builder = builder.config("spark.ui.enabled", "false")
if len(sys.argv) > 2:
    builder = builder.config("spark.authenticate", "true").config("spark.authenticate.secret", sys.argv[2])
print("application", builder.getOrCreate().sparkContext.applicationId)
"""


@pytest.mark.parametrize(
    ("secret", "why"),
    [([], "Expected SaslMessage"), (["a guess"], "Mismatched response")],
    ids=("none", "wrong"),
)
def test_an_application_without_the_secret_is_refused(
    run: Controller, tmp_path: Path, secret: list[str], why: str
) -> None:
    [url] = eventually(lambda: {url for line in commands(run) for url in MASTER.findall(line)})
    script, message = tmp_path / "stranger.py", tmp_path / "said"
    script.write_text(STRANGER)
    with (
        message.open("w") as out,
        Popen([sys.executable, script, url, *secret], stdout=out, stderr=STDOUT) as item,
    ):
        try:
            eventually(
                lambda: "Failed to connect to master" in message.read_text() and why in message.read_text()
            )
            assert "application app-" not in message.read_text()
        finally:
            item.kill()  # Spark would try for a minute


def test_executors_get_the_secret_in_their_environment_also_on_nodes_that_are_added(run: Controller) -> None:
    at(run, nodes=1, project=2)
    at(run, nodes=2, project=3)
    given = eventually(lambda: result if len(result := list(run.executors())) == 2 else None)
    assert {item.get("_SPARK_AUTH_SECRET") for item in given} == {SETTINGS["spark.authenticate.secret"]}


def test_only_loopback_listens(run: Controller) -> None:
    at(run, nodes=2, project=3)
    listening = []
    for process in run.processes():
        with suppress(psutil.NoSuchProcess):
            listening += [
                (process.name(), connection.laddr.ip)
                for connection in process.net_connections(kind="inet")
                if connection.status == psutil.CONN_LISTEN or connection.type.name == "SOCK_DGRAM"
            ]
    assert len(listening) > 6  # Master, Workers and their pages, driver, executors, block managers, gateway
    assert [pair for pair in listening if pair[1] not in LOOPBACK] == []


def test_no_command_line_shows_a_secret(run: Controller) -> None:
    at(run, nodes=2, project=3)

    def executors(lines: list[str]) -> int:
        return sum("CoarseGrainedExecutorBackend" in line for line in lines)

    # a JVM that is about to start a program shows its own line twice for a moment
    lines = eventually(lambda: result if executors(result := commands(run)) >= 2 else None)
    assert any("SparkSubmit" in line for line in lines)
    assert [line for line in lines if MARK in line] == []


def test_no_file_that_others_can_read_holds_a_secret(run: Controller) -> None:
    run.wait_for_turns(1)
    result = holding(run)
    assert {path.name for path in result} == {"driver.json", "cluster.conf"}
    assert {path.stat().st_mode & 0o077 for path in result} == {0}


def test_journal_status_and_explain_show_no_secret_even_of_a_query_that_failed(run: Controller) -> None:
    run.wait_for_turns(1)
    if not has_fallen(run):
        fall_into_the_trap(run)
    with closing(sqlite3.connect(f"file:{run.folder / JOURNAL}?mode=ro", uri=True)) as journal:
        dumped = "\n".join(journal.iterdump())
    assert "fell into the trap" in dumped
    assert MARK not in dumped
    for command in ("status", "status --json", "explain", "explain --json"):
        output = subprocess.run(
            [RHEOSTAT, *command.split(), "--journal", str(run.folder / JOURNAL)],
            capture_output=True,
            text=True,
            check=True,
        )
        assert output.stdout
        assert MARK not in output.stdout + output.stderr
