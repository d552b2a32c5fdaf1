"""The embedded cluster: real Spark daemons on loopback."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from rheostat.model.configuration import NodeKind
from rheostat.model.errors import RheostatError
from rheostat.services import cgroups
from rheostat.services.cleanup_process import members
from rheostat.services.local_cluster import LocalCluster

SMALL = NodeKind("small", cores=0.5, slots=2, memory_mb=512)


@pytest.fixture(scope="module")
def provider() -> Iterator[LocalCluster]:
    with LocalCluster() as started:
        yield started


def eventually(condition: Callable[[], bool], seconds: float = 60.0) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.05)
    return condition()


def test_a_worker_registers_with_its_slots_and_is_gone_after_its_removal(provider: LocalCluster) -> None:
    before = provider.registered()
    node = provider.add(SMALL)
    assert node.ready_at is None
    provider.wait(node.name)
    assert node.ready_at is not None
    assert eventually(lambda: provider.registered() == before + 1)
    group = node.group
    provider.remove(node.name)
    assert members(node.process.pid) == []
    assert group is None or not group.path.exists()
    assert node not in provider.workers()


def test_two_nodes_start_at_the_same_time(provider: LocalCluster) -> None:
    nodes = [provider.add(SMALL), provider.add(SMALL)]
    assert [node.ready_at for node in nodes] == [None] * 2  # neither was waited for
    for node in nodes:
        provider.wait(node.name)
    there = [node.name for node in provider.workers()]
    for node in nodes:
        provider.remove(node.name)
    assert there[-2:] == [node.name for node in nodes]


def test_without_control_groups_it_says_so_once_and_goes_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(cgroups, "_V1", tmp_path / "none")
    monkeypatch.setattr(cgroups, "_V2", tmp_path / "none")
    said: list[str] = []
    with LocalCluster(warn=said.append) as started:
        node = started.add(SMALL)
        started.wait(node.name)
        assert node.group is None
    assert len(said) == 1
    assert "no CPU quota" in said[0]


def test_a_node_s_cpu_is_bounded_by_its_quota(provider: LocalCluster) -> None:
    assert cgroups.problem() is None, "this machine has no control groups: run the tests where there are some"
    node = provider.add(SMALL)
    assert node.group is not None
    provider.limit(node.name)
    busy = subprocess.Popen(node.group.command([sys.executable, "-c", "while True: pass"]))
    spinning, stat = psutil.Process(busy.pid), node.group.path / "cpu.stat"

    def held_back() -> int:
        return int(dict(line.split() for line in stat.read_text().splitlines())["nr_throttled"])

    try:  # beside other work it gets less than its quota for long, and is held back now and then only
        eventually(lambda: spinning.cpu_times().user > 0.5)
        before, began, periods = sum(spinning.cpu_times()[:2]), time.monotonic(), held_back()
        assert eventually(lambda: held_back() > periods + 5 and time.monotonic() > began + 3)
        used = (sum(spinning.cpu_times()[:2]) - before) / (time.monotonic() - began)
    finally:
        busy.kill()
        busy.wait()
        provider.remove(node.name)
    assert used < 0.7  # half a core, shared with the Worker


def test_only_loopback_listens(provider: LocalCluster) -> None:
    node = provider.add(SMALL)
    provider.wait(node.name)
    listening = [
        connection.laddr.ip
        for pid in members(node.process.pid)
        for connection in psutil.Process(pid).net_connections(kind="inet")
        if connection.status == psutil.CONN_LISTEN
    ]
    provider.remove(node.name)
    assert len(listening) >= 2  # the Worker and its page
    assert set(listening) <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}


def test_a_worker_that_dies_at_its_start_is_told_with_its_last_words_and_removed(
    provider: LocalCluster,
) -> None:
    node = provider.add(NodeKind("wrong", slots=2, memory_mb=0.1))  # 0 MB: the Worker refuses to start
    with pytest.raises(RheostatError, match=node.name):
        provider.wait(node.name)
    assert node not in provider.workers()


PARENT = """
from threading import Event
from rheostat.services.local_cluster import LocalCluster
from rheostat.model.configuration import NodeKind
with LocalCluster() as provider:
    node = provider.add(NodeKind(cores=0.5, slots=1, memory_mb=512))
    provider.wait(node.name)
    group = node.group.path if node.group else '-'
    print(provider.folder, provider._master.pid, node.process.pid, group, flush=True)
    Event().wait()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_everything_vanishes_when_the_parent_is_killed_or_interrupted_without_its_cleanup_process(
    number: signal.Signals,
) -> None:
    command = [sys.executable, "-c", PARENT]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        folder, master, worker, group = parent.stdout.readline().split()
        if number is signal.SIGINT:
            children = psutil.Process(parent.pid).children()
            next(child for child in children if "cleanup_process.py" in " ".join(child.cmdline())).kill()
        parent.send_signal(number)
        parent.wait(timeout=120)
    assert eventually(lambda: not members(int(master)) and not members(int(worker)))
    assert eventually(lambda: not Path(folder).exists())
    assert group == "-" or eventually(lambda: not Path(group).exists())
