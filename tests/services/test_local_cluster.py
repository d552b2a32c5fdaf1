"""The embedded cluster with scripts in place of Spark's daemons: how it ends, whatever ended before."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import psutil
import pytest

from rheostat.model.configuration import NodeKind
from rheostat.services.cleanup_process import members, remove_cgroup
from rheostat.services.local_cluster import LocalCluster

LIMIT_SECONDS = 20.0
PARENT = """
from threading import Event
from rheostat.services.local_cluster import LocalCluster
from rheostat.model.configuration import NodeKind
with LocalCluster() as provider:
    node = provider.add(NodeKind(slots=1))
    provider.wait(node.name)
    print(provider.folder, provider._master.pid, node.process.pid, node.group.path if node.group else "-",
        flush=True)
    Event().wait()
"""


@pytest.fixture(autouse=True)
def _scripted(scripted_spark: None) -> None:
    pass


def eventually(condition: Callable[[], object]) -> bool:
    until = time.monotonic() + LIMIT_SECONDS
    while not condition() and time.monotonic() < until:
        time.sleep(0.02)
    return bool(condition())


def cleanup_processes_of(parent: int) -> set[psutil.Process]:
    """The cleanup processes of a process; this one may hold those of a cluster that other tests share."""
    children = psutil.Process(parent).children()
    alive = [child for child in children if child.status() != psutil.STATUS_ZOMBIE]
    return {child for child in alive if "cleanup_process.py" in " ".join(child.cmdline())}


class Cluster:
    """A cluster of another process, which Ctrl-C ends."""

    def __init__(self) -> None:
        self.parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
        assert self.parent.stdout is not None
        folder, master, worker, group = self.parent.stdout.readline().split()
        self.folder, self.group = Path(folder), Path(group)  # "-": this machine has no control groups
        self.sessions = int(master), int(worker)
        (self.cleanup,) = cleanup_processes_of(self.parent.pid)

    def left(self) -> list[object]:
        groups = [self.group] if self.group.exists() else []
        folders = [self.folder] if self.folder.exists() else []
        return [*(pid for session in self.sessions for pid in members(session)), *groups, *folders]

    def clear(self) -> None:
        """End whatever a failed test left."""
        for pid in (pid for session in self.sessions for pid in members(session)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with suppress(psutil.Error):
            self.cleanup.kill()
        self.parent.kill()
        self.parent.communicate()
        remove_cgroup(self.group)
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.mark.parametrize("number", [None, signal.SIGSTOP, signal.SIGKILL])
@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_ends_everything_whatever_happened_to_the_cleanup_process(
    number: signal.Signals | None, times: int
) -> None:
    cluster = Cluster()
    try:
        if number is not None:
            cluster.cleanup.send_signal(number)
        assert len(cluster.left()) >= 5  # two shells, what they wait for, and the folder
        for _ in range(times):  # the second one of an impatient user
            cluster.parent.send_signal(signal.SIGINT)
        cluster.parent.wait(timeout=LIMIT_SECONDS)
        assert cluster.left() == []
        assert not cluster.cleanup.is_running()
    finally:
        cluster.clear()


def test_the_cleanup_process_ends_everything_when_the_parent_is_killed() -> None:
    cluster = Cluster()
    try:
        cluster.parent.kill()
        assert eventually(lambda: not cluster.left()), cluster.left()
    finally:
        cluster.clear()


def test_a_cleanup_process_that_is_killed_is_replaced_and_gets_every_entry() -> None:
    kind, others = NodeKind(slots=1), cleanup_processes_of(os.getpid())
    with LocalCluster() as provider:
        first = provider.add(kind)
        (killed,) = cleanup_processes_of(os.getpid()) - others
        killed.kill()
        second = provider.add(kind)
        provider.remove(first.name)
        assert [node.name for node in provider.workers()] == [second.name]
        (replaced,) = cleanup_processes_of(os.getpid()) - others
        assert replaced != killed and replaced.is_running()
    assert members(second.process.pid) == [] and not provider.folder.exists()


@pytest.mark.parametrize("page", [b"", b'{"workers": [{"webui', b"[]", b"{}", b'{"workers": [{}]}', b"\xff"])
@pytest.mark.parametrize("missing", [0, 10])
def test_half_an_answer_of_the_master_counts_as_no_answer(page: bytes, missing: int) -> None:
    class Half(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(page) + missing))  # it dies before the rest
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, format: str, *words: object) -> None:
            pass

    with LocalCluster() as provider, HTTPServer(("127.0.0.1", 0), Half) as server:
        Thread(target=server.handle_request, daemon=True).start()
        provider._state = f"http://127.0.0.1:{server.server_port}/"
        with pytest.raises(OSError, match="the Master"):
            provider.registered()
