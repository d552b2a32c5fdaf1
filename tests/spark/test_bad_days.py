"""Bad days, on real Spark: what is missing, full, taken, frozen or dead, and what a user then sees."""

import contextlib
import os
import resource
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread

import psutil
import pytest

from rheostat.engines.spark.engine import SparkEngine
from rheostat.infrastructure.keeper import members
from rheostat.infrastructure.local import LocalNode, LocalProvider
from rheostat.model.configuration import NodeKind
from rheostat.model.decision import Status
from tests.cli.commands import refused

from .controllers import Controller, controller, eventually
from .support import application, observe_batches, plan
from .test_rescale import check_totals

KIND = NodeKind(cores=1.0, slots=2, memory_mb=1024.0)


# -- before anything starts -------------------------------------------------------------------------------


def test_no_java_and_an_old_java_are_one_line(
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


def test_a_master_that_is_not_there_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script, folder = tmp_path / "app.py", tmp_path / "run"
    script.write_text("pass")
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        url = f"spark://127.0.0.1:{silent.getsockname()[1]}"
        told = refused(capsys, "run", "--master", url, "--folder", str(folder), str(script))
    assert f"no Spark Master answers at {url}" in told
    assert not folder.exists()


def test_a_port_that_is_taken_is_one_line(cluster: LocalProvider, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        settings = f"--conf spark.driver.port={taken.getsockname()[1]} --conf spark.port.maxRetries=0"
        with controller(
            tmp_path, "plain_wrong", "nothing", options=f"--master {cluster.url} {settings}"
        ) as run:
            told = run.refused()
            assert run.left() == []
    assert "Spark does not start: java.net.BindException: " in told
    assert "Address already in use" in told


# -- one application that is hurt again and again ---------------------------------------------------------


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hurt")


@pytest.fixture(scope="module")
def hurt(cluster: LocalProvider, place: Path) -> Iterator[SparkEngine]:
    start = {"in": 1, "key": 2, "total": 2}
    arguments = ("50", "microbatch", "count", str(place / "totals"))
    with application(cluster, place, "totals", *arguments, parallelism=start, kind=KIND) as engine:
        observe_batches(engine, 2)
        yield engine


def test_a_worker_that_does_not_register_in_time_is_taken_back(
    hurt: SparkEngine, cluster: LocalProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    added: list[LocalNode] = []
    add = cluster.add

    def frozen(kind: NodeKind, region: str = "local") -> LocalNode:
        added.append(add(kind, region))
        os.killpg(added[-1].process.pid, signal.SIGSTOP)
        return added[-1]

    monkeypatch.setattr(cluster, "add", frozen)
    monkeypatch.setattr(cluster, "_start_seconds", 1.0)
    before, run = hurt.configuration, hurt.monitor.run_id
    outcome = hurt.apply(plan(hurt, nodes=2, key=4))
    assert outcome.status is Status.FAILED
    assert f"{added[0].name} was not ready within 1 s" in outcome.reason
    assert outcome.configuration == hurt.configuration == before
    assert members(added[0].process.pid) == []
    assert added[0].group is None or not added[0].group.path.exists()
    seen = observe_batches(hurt, 1)
    assert seen.operators["key"].parallelism == 2
    assert hurt.monitor.run_id == run


def executors(node: LocalNode) -> list[psutil.Process]:
    """The executors' processes on a node."""
    found = []
    for pid in members(node.process.pid):
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(pid)
            if any("CoarseGrainedExecutorBackend" in word for word in process.cmdline()):
                found.append(process)
    return found


def test_an_executor_that_dies_during_a_scale_out_is_replaced(
    hurt: SparkEngine, cluster: LocalProvider
) -> None:
    killed: list[int] = []

    def kill() -> None:
        new = eventually(lambda: [executor for node in cluster.nodes()[1:] for executor in executors(node)])
        new[0].kill()
        killed.append(new[0].pid)

    killer = Thread(target=kill)
    killer.start()
    run = hurt.monitor.run_id
    outcome = hurt.apply(plan(hurt, nodes=2, key=4))
    killer.join()
    assert killed
    assert outcome.status is Status.APPLIED, outcome.reason
    seen = observe_batches(hurt, 2)
    assert [node.executors for node in seen.nodes] == [1, 1]
    assert hurt.monitor.run_id == run


def test_an_executor_that_dies_while_the_query_runs_is_replaced_and_told(
    hurt: SparkEngine, cluster: LocalProvider
) -> None:
    run, before = hurt.monitor.run_id, {executor["id"] for executor in hurt.monitor.executors}
    events = list(hurt.observe().events)
    executors(cluster.nodes()[0])[0].kill()

    def replaced() -> bool:
        events.extend(hurt.observe().events)
        now = {executor["id"] for executor in hurt.monitor.executors}
        told = {event.kind for event in events}  # later than Spark counts it
        return {"executor added", "executor removed"} <= told and len(now) == 2 and bool(now - before)

    eventually(replaced, "another executor, and word of it")
    assert any(event.kind == "executor removed" and "is gone" in event.text for event in events)
    observe_batches(hurt, 2)
    assert hurt.monitor.run_id == run


def test_after_all_that_no_row_is_lost_or_doubled(hurt: SparkEngine, place: Path) -> None:
    hurt.monitor.link.stop()
    assert check_totals(place / "totals") > 0


def test_a_checkpoint_of_another_topology_is_refused_and_left_alone(
    hurt: SparkEngine, cluster: LocalProvider, place: Path, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "checkpoint"
    shutil.copytree(place / "checkpoint", checkpoint)

    def look() -> dict[Path, tuple[int, int]]:
        return {f: (f.stat().st_mtime_ns, f.stat().st_size) for f in checkpoint.rglob("*") if f.is_file()}

    before = look()
    options = f"--master {cluster.url} --checkpoint {checkpoint}"
    with controller(tmp_path, "chain", "50", "microbatch", options=options) as run:
        told = run.refused()
        assert run.left() == []
    assert "belongs to 'totals' (microbatch; total), this is 'chain' (microbatch; no stateful" in told
    assert look() == before


# -- runs that cannot begin -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def foreign(cluster: LocalProvider) -> Iterator[LocalProvider]:
    """A Worker that is not the controller's."""
    name = cluster.add(KIND).name
    cluster.wait(name)
    yield cluster
    cluster.remove(name)


def test_real_time_mode_without_a_slot_for_each_instance_is_refused(
    foreign: LocalProvider, tmp_path: Path
) -> None:
    options = f"--master {foreign.url} --mode realtime --nodes 1"
    with controller(tmp_path, "totals", "20", "realtime", "count", options=options) as run:
        assert "gives 3 instances a slot each, the nodes have 2: allow more with --nodes" in run.refused()
        assert run.left() == []
        assert not (run.folder / "checkpoint").exists()  # another mode may still have it


@pytest.mark.parametrize("script", ["plain", "totals"])
def test_a_query_that_never_runs_ends_the_run_with_one_line(
    foreign: LocalProvider, tmp_path: Path, script: str
) -> None:
    (tmp_path / "trap").touch()
    arguments = {
        "plain": (str(tmp_path), "20"),
        "totals": ("20", "microbatch", "count", str(tmp_path / "no" / "such" / "folder")),
    }
    told = {"plain": "fell into the trap", "totals": "the query does not start: "}
    with controller(tmp_path, script, *arguments[script], options=f"--master {foreign.url}") as run:
        assert run.start().end() == 1
        assert len(run.err.splitlines()) == 1
        assert told[script] in run.err
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


def test_full_disks_are_told_and_survived(foreign: LocalProvider, tmp_path: Path) -> None:
    arguments = ("50", "microbatch", "count", str(tmp_path / "totals"))
    with disk(tmp_path / "run", 32) as journals, disk(tmp_path / "state", 64) as checkpoints:
        options = f"--master {foreign.url} --nodes 1 --checkpoint {checkpoints.folder}/checkpoint"
        with controller(tmp_path, "totals", *arguments, options=options) as run:
            run.start().wait_for_turns(1)
            _fill_the_journal_s_disk(run, journals)
            _fill_the_checkpoint_s_disk(run, checkpoints)
            assert run.end(signal.SIGINT) == 130
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
    run.wait_for_event("query", "it starts again in 1 s")
    failed = run.wait_for_event("query", "it starts again in 2 s")
    checkpoints.free(drivers)
    freed = run.wait_for(run.last)
    assert freed is not None
    run.wait_for_event("query started", "totals started", since=failed.at)
    assert run.wait_for_turns(2).outcome.configuration == freed.outcome.configuration
    assert run.driver == driver  # it lived through it
