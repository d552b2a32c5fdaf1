"""Bad days, on real Spark: what is missing, full, taken, frozen or dead, and what a user then sees."""

import contextlib
import json
import resource
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rheostat.model.configuration import NodeKind
from rheostat.services.cleanup_process import members
from rheostat.services.local_cluster import LocalCluster
from tests.cli.commands import refused

from .controllers import Controller, controller
from .support import check_totals

KIND = NodeKind(cores=1.0, slots=2, memory_mb=1024.0)


# -- before anything starts -------------------------------------------------------------------------------


@pytest.mark.no_jvm
def test_a_missing_and_an_old_java_are_one_line_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script, home = tmp_path / "app.py", tmp_path / "java"
    script.write_text("pass")
    command = ("run", "--folder", str(tmp_path / "run"), str(script))
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert "no Java was found in JAVA_HOME: install Java 17" in refused(capsys, *command)
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    (home / "bin" / "java").chmod(0o755)
    assert "is version 11, Spark 4 needs 17 or later" in refused(capsys, *command)
    assert not (tmp_path / "run").exists()


def test_a_master_that_does_not_answer_is_a_one_line_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script, folder = tmp_path / "app.py", tmp_path / "run"
    script.write_text("pass")
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        url = f"spark://127.0.0.1:{silent.getsockname()[1]}"
        output = refused(capsys, "run", "--master", url, "--folder", str(folder), str(script))
    assert f"no Spark Master answers at {url}" in output
    assert not folder.exists()


def test_a_port_in_use_is_a_one_line_error(cluster: LocalCluster, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        settings = f"--conf spark.driver.port={taken.getsockname()[1]} --conf spark.port.maxRetries=0"
        with controller(
            tmp_path, "plain_wrong", "nothing", options=f"--master {cluster.url} {settings}"
        ) as run:
            output = run.refused()
            assert run.left() == []
    assert "Spark failed to start: java.net.BindException: " in output
    assert "Address already in use" in output


# -- runs that cannot begin -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def foreign(cluster: LocalCluster) -> Iterator[LocalCluster]:
    """A Worker that is not the controller's."""
    name = cluster.add(KIND).name
    cluster.wait(name)
    yield cluster
    cluster.remove(name)


def test_a_checkpoint_of_another_topology_is_refused_and_left_alone(
    foreign: LocalCluster, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "checkpoint"
    checkpoint.mkdir()
    owner = {"name": "totals", "mode": "microbatch", "source": "in", "stateful": ["total"]}
    (checkpoint / "rheostat.json").write_text(json.dumps(owner))
    options = f"--master {foreign.url} --checkpoint {checkpoint}"
    with controller(tmp_path, "chain", "50", "microbatch", options=options) as run:
        output = run.refused()
        assert run.left() == []
    assert "belongs to 'totals' (microbatch; total), this is 'chain' (microbatch; no stateful" in output
    assert [path.name for path in checkpoint.iterdir()] == ["rheostat.json"]
    assert json.loads((checkpoint / "rheostat.json").read_text()) == owner


def test_a_query_that_never_runs_ends_the_run_with_one_line(foreign: LocalCluster, tmp_path: Path) -> None:
    (tmp_path / "trap").touch()
    with controller(tmp_path, "plain", str(tmp_path), "20", options=f"--master {foreign.url}") as run:
        assert run.start().end() == 1
        assert len(run.err.splitlines()) == 1
        assert "fell into the trap" in run.err
        assert run.left() == []


# -- full disks ---------------------------------------------------------------------------------------------


class Disk:
    """A small disk; where none may be mounted, a limit on the size of files does what a full one does."""

    def __init__(self, folder: Path, megabytes: int) -> None:
        self.folder = folder
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
        self.mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0

    def fill(self, processes: Callable[[], list[int]], most: int) -> None:
        if not self.mounted:
            self._limit(processes(), most)
            return
        with contextlib.suppress(OSError), (self.folder / "filler").open("wb", buffering=0) as filler:
            while True:
                filler.write(bytes(4096))

    def free(self, processes: Callable[[], list[int]]) -> None:
        if not self.mounted:
            self._limit(processes(), resource.RLIM_INFINITY)
        (self.folder / "filler").unlink(missing_ok=True)

    @staticmethod
    def _limit(pids: list[int], size: int) -> None:
        for pid in pids:
            _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, hard))

    def close(self) -> None:
        if self.mounted:
            subprocess.run(["umount", "--lazy", str(self.folder)], check=True)


@contextlib.contextmanager
def disk(folder: Path, megabytes: int) -> Iterator[Disk]:
    made = Disk(folder, megabytes)
    try:
        yield made
    finally:
        made.close()


def test_full_disks_are_reported_and_survived(foreign: LocalCluster, tmp_path: Path) -> None:
    arguments = ("50", "microbatch", "count", str(tmp_path / "totals"))
    with disk(tmp_path / "run", 32) as journals, disk(tmp_path / "state", 64) as checkpoints:
        options = f"--master {foreign.url} --nodes 1 --checkpoint {checkpoints.folder}/checkpoint"
        with controller(tmp_path, "totals", *arguments, options=options) as run:
            run.start().wait_for_turns(1)
            _fill_the_journal_s_disk(run, journals)
            _fill_the_checkpoint_s_disk(run, checkpoints)
            assert run.end(signal.SIGHUP) == 129  # its terminal was closed
            assert run.left() == []
    assert check_totals(tmp_path / "totals") > 0


def _fill_the_journal_s_disk(run: Controller, journals: Disk) -> None:
    def controllers() -> list[int]:
        return [run.process.pid] if run.process else []

    before = run.turns()[-1].number
    journals.fill(controllers, 8192)
    run.wait_for(lambda: "turns are kept in memory" in run.err)
    journals.free(controllers)
    run.wait_for_event("journal", "written late, 0 lost")
    numbers = [turn.number for turn in run.turns()]
    assert numbers == list(range(1, numbers[-1] + 1)) and numbers[-1] > before
    assert run.err.count("cannot be written") == len(run.err.splitlines()) == 1


def _fill_the_checkpoint_s_disk(run: Controller, checkpoints: Disk) -> None:
    def drivers() -> list[int]:
        return members(run.driver)

    driver = run.driver
    checkpoints.fill(drivers, 16)
    run.wait_for_event("query", "restarting in 1 s")
    failed = run.wait_for_event("query", "restarting in 2 s")
    checkpoints.free(drivers)
    freed = run.wait_for(run.last)
    assert freed is not None
    run.wait_for_event("query started", "totals started", since=failed.at)
    assert run.wait_for_turns(2).outcome.configuration == freed.outcome.configuration
    assert run.driver == driver  # it lived through it
