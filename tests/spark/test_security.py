"""Nothing listens beyond this machine, strangers are refused, and secrets are seen nowhere."""

import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from subprocess import PIPE, STDOUT, Popen

import psutil
import pytest

from rheostat.cli.running import JOURNAL, Order, with_secret
from rheostat.model.decision import Status
from rheostat.model.secrets import properties, write_private
from rheostat.policies.registry import build
from tests.cli.commands import RHEOSTAT, refused

from .controllers import Controller, controller, eventually

MARK = "Hush-4"  # all secrets begin with it
SETTINGS = {
    "spark.authenticate": "true",
    "spark.authenticate.secret": f"{MARK}2-of-the-cluster",
    "spark.network.crypto.enabled": "true",
    "spark.io.encryption.enabled": "true",
    "spark.hadoop.fs.s3a.secret.key": f"{MARK}3-of-a-store",
    "spark.rheostat.kafka.sasl.jaas.config": f'x.PlainLoginModule required password="{MARK}4-of-kafka";',
}
Process = Popen[str]
MASTER = re.compile(r"spark://127\.0\.0\.1:\d+$")
LOOPBACK = ("127.0.0.1", "::1", "::ffff:127.0.0.1")
STRANGER = """
import sys
from pyspark.sql import SparkSession
builder = SparkSession.builder.master(sys.argv[1]).config("spark.driver.host", "127.0.0.1")
builder = builder.config("spark.ui.enabled", "false")
if len(sys.argv) > 2:
    builder = builder.config("spark.authenticate", "true").config("spark.authenticate.secret", sys.argv[2])
context = builder.getOrCreate().sparkContext
print("application", context.applicationId)
context.stop()
"""


def test_strangers_are_refused_only_loopback_listens_and_no_secret_is_seen(tmp_path: Path) -> None:
    conf = tmp_path / "spark.conf"
    write_private(conf, properties(SETTINGS))
    options = f"--nodes 1:2 --conf-file {conf}"
    with controller(tmp_path, "plain", str(tmp_path / "run"), "50", options=options) as run:
        run.start()
        with _strangers(run, tmp_path) as strangers:  # Spark tries for a minute, so everything else goes on
            _an_application_that_knows_the_secret_runs(run)
            _executors_get_the_secret_in_their_environment(run)
            _a_node_that_is_added_knows_the_secret(run)
            _only_loopback_listens(run)
            _a_query_that_fails_tells_no_secret(run)
            _no_command_line_shows_a_secret(run)
            _no_file_that_others_can_read_holds_a_secret(run)
            _journal_status_and_explain_show_no_secret(run)
            _strangers_were_refused(strangers)
        _nothing_is_left_of_a_secret_after_the_end(run)


@contextmanager
def _strangers(run: Controller, folder: Path) -> Iterator[list[Process]]:
    """Applications with no secret and with a wrong one."""
    [url] = eventually(lambda: {url for line in _commands(run) for url in MASTER.findall(line)})
    script = folder / "stranger.py"
    script.write_text(STRANGER)
    started = [
        Popen([sys.executable, str(script), url, *secret], stdout=PIPE, stderr=STDOUT, text=True)
        for secret in ([], ["a guess"])
    ]
    try:
        yield started
    finally:
        for stranger in started:
            stranger.kill()
            stranger.communicate()


def _an_application_that_knows_the_secret_runs(run: Controller) -> None:
    assert run.wait_for_turns(2).observation.application.batches


def _executors_get_the_secret_in_their_environment(run: Controller) -> None:
    given = {environment.get("_SPARK_AUTH_SECRET") for environment in run.executors()}
    assert given == {SETTINGS["spark.authenticate.secret"]}


def _a_node_that_is_added_knows_the_secret(run: Controller) -> None:
    run.wish({"nodes": 2, "parallelism": {"2-project": 3}})
    run.wait_for_turn(lambda turn: turn.outcome.status is Status.APPLIED)
    assert run.wait_for_turns(2).observation.operators["2-project"].parallelism == 3
    eventually(lambda: len(list(run.executors())) == 2)  # a process that one starts looks as it at first


def _only_loopback_listens(run: Controller) -> None:
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


def _a_query_that_fails_tells_no_secret(run: Controller) -> None:
    trap = run.folder / "trap"
    trap.touch()
    run.wait_for_event("driver", "fell into the trap")
    trap.unlink()
    run.wait_for_turns(1)


def _no_command_line_shows_a_secret(run: Controller) -> None:

    def executors(lines: list[str]) -> int:
        return sum("CoarseGrainedExecutorBackend" in line for line in lines)

    # a JVM that is about to start a program shows its own line twice for a moment
    lines = eventually(lambda: found if executors(found := _commands(run)) >= 2 else None)
    assert any("SparkSubmit" in line for line in lines)
    assert [line for line in lines if MARK in line] == []


def _no_file_that_others_can_read_holds_a_secret(run: Controller) -> None:
    holding = _holding(run)
    assert {path.name for path in holding} == {"driver.json", "cluster.conf"}
    assert {path.stat().st_mode & 0o077 for path in holding} == {0}


def _journal_status_and_explain_show_no_secret(run: Controller) -> None:
    with closing(sqlite3.connect(f"file:{run.folder / JOURNAL}?mode=ro", uri=True)) as journal:
        dumped = "\n".join(journal.iterdump())
    assert "fell into the trap" in dumped
    assert MARK not in dumped
    for command in ("status", "status --json", "explain", "explain --json"):
        told = subprocess.run(
            [RHEOSTAT, *command.split(), "--journal", str(run.folder / JOURNAL)],
            capture_output=True,
            text=True,
            check=True,
        )
        assert told.stdout
        assert MARK not in told.stdout + told.stderr


def _strangers_were_refused(strangers: list[Process]) -> None:
    for stranger in strangers:
        said, _ = stranger.communicate(timeout=240)
        assert stranger.returncode != 0
        assert "unresponsive" in said
        assert "application app-" not in said


def _nothing_is_left_of_a_secret_after_the_end(run: Controller) -> None:
    run.send(signal.SIGINT)
    assert run.end() == 130
    with suppress(AssertionError):
        eventually(lambda: not run.left())
    assert run.left() == []
    assert _holding(run) == []
    assert MARK not in run.out + run.err


@pytest.mark.parametrize(
    ("mode", "content", "said"),
    [
        (0o644, "spark.a b", "chmod 600"),
        (0o660, "spark.a b", "chmod 600"),
        (0o600, f"spark.a b\n{MARK}2", "line 2: write it as spark.some.key VALUE"),
        (0o600, "a=b", "line 1: write it as"),
    ],
)
def test_a_settings_file_that_is_open_to_others_or_wrong_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], mode: int, content: str, said: str
) -> None:
    path = tmp_path / "spark.conf"
    path.write_text(content)
    path.chmod(mode)
    for command in (["run", "app.py"], ["cluster"]):
        told = refused(capsys, *command, "--conf-file", str(path))
        assert said in told
        assert MARK not in told


@pytest.mark.parametrize("pair", [f"{MARK}2", f"authenticate.secret={MARK}2"])
def test_a_mistake_in_a_setting_is_told_without_its_value(
    capsys: pytest.CaptureFixture[str], pair: str
) -> None:
    assert MARK not in refused(capsys, "run", "app.py", "--conf", pair)


def test_a_run_on_the_embedded_cluster_gets_a_secret_unless_the_user_says_otherwise() -> None:
    order = Order("app", Path("app.py"), build("static"), "static", Path("run"))
    drawn = [with_secret(order).settings for _ in range(2)]
    assert [settings["spark.authenticate"] for settings in drawn] == ["true", "true"]
    assert len({settings["spark.authenticate.secret"] for settings in drawn}) == 2
    mine = replace(order, settings={"spark.authenticate.secret": MARK})
    assert with_secret(mine).settings["spark.authenticate.secret"] == MARK
    for other in (
        replace(order, master="spark://a:1"),
        replace(order, settings={"spark.authenticate": "false"}),
    ):
        assert with_secret(other) == other


def _commands(run: Controller) -> list[str]:
    lines = []
    for process in run.processes():
        with suppress(psutil.Error):
            lines.append(" ".join(process.cmdline()))
    return lines


def _holding(run: Controller) -> list[Path]:
    """The files of a run, of its cluster and of its logs in which a secret can be read."""
    found = []
    walks = chain(os.walk(run.place), os.walk(run.temporary))  # which skips folders that go meanwhile
    for path in [Path(folder) / name for folder, _, names in walks for name in names]:
        with suppress(OSError):  # gone meanwhile
            if path.is_file() and path.name != "spark.conf" and MARK.encode() in path.read_bytes():
                found.append(path)
    return found
