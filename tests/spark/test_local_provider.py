"""The embedded cluster: real Spark daemons on loopback."""

import os
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
from rheostat.providers.local import LocalProvider
from rheostat.services import cgroups
from rheostat.services.cleanup_process import members

SMALL = NodeKind("small", cores=0.5, slots=2, memory_mb=512)


@pytest.fixture(scope="module")
def provider() -> Iterator[LocalProvider]:
    with LocalProvider() as started:
        yield started


def eventually(condition: Callable[[], bool], seconds: float = 60.0) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.05)
    return condition()


def test_a_worker_registers_with_its_slots_and_is_gone_after_its_removal(provider: LocalProvider) -> None:
    before = provider.registered()
    node = provider.add(SMALL)
    assert node.ready_at == float("inf")
    provider.wait(node.name)
    assert node.ready_at < float("inf")
    assert eventually(lambda: provider.registered() == before + 1)
    group = node.group
    provider.remove(node.name)
    assert members(node.process.pid) == []
    assert group is None or not group.path.exists()
    assert node not in provider.nodes()


def test_two_nodes_start_at_the_same_time(provider: LocalProvider) -> None:
    nodes = [provider.add(SMALL), provider.add(SMALL)]
    assert [node.ready_at for node in nodes] == [float("inf")] * 2  # neither was waited for
    for node in nodes:
        provider.wait(node.name)
    there = [node.name for node in provider.nodes()]
    for node in nodes:
        provider.remove(node.name)
    assert there[-2:] == [node.name for node in nodes]


def test_without_control_groups_it_says_so_once_and_goes_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(cgroups, "_V1", tmp_path / "none")
    monkeypatch.setattr(cgroups, "_V2", tmp_path / "none")
    messages: list[str] = []
    with LocalProvider(warn=messages.append) as started:
        node = started.add(SMALL)
        started.wait(node.name)
        assert node.group is None
    assert len(messages) == 1
    assert "no CPU quota" in messages[0]


def test_a_node_s_cpu_is_bounded_by_its_quota(provider: LocalProvider) -> None:
    assert cgroups.problem() is None, "this machine has no control groups: run the tests where there are some"
    node = provider.add(SMALL)
    assert node.group is not None
    provider.limit(node.name)
    spin = "import time\nend = time.monotonic() + 3\nwhile time.monotonic() < end: pass"
    started = time.monotonic()
    busy = subprocess.Popen(node.group.command([sys.executable, "-c", spin]))
    _, _, usage = os.wait4(busy.pid, 0)
    busy.returncode = 0
    used = (usage.ru_utime + usage.ru_stime) / (time.monotonic() - started)
    held_back = dict(line.split() for line in (node.group.path / "cpu.stat").read_text().splitlines())
    provider.remove(node.name)
    assert used < 0.7  # half a core, shared with the Worker
    assert int(held_back["nr_throttled"]) > 5  # a busy machine would give it no more anyway


def test_only_loopback_listens(provider: LocalProvider) -> None:
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


def test_a_worker_that_fails_to_start_is_removed_and_its_last_log_line_is_reported(
    provider: LocalProvider,
) -> None:
    node = provider.add(NodeKind("wrong", slots=2, memory_mb=0.1))  # 0 MB: the Worker refuses to start
    with pytest.raises(RheostatError, match=node.name):
        provider.wait(node.name)
    assert node not in provider.nodes()


PARENT = """
from threading import Event
from rheostat.providers.local import LocalProvider
from rheostat.model.configuration import NodeKind
with LocalProvider() as provider:
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
