"""A Spark cluster on this machine: a Master, and Workers with slots and CPU quotas, as child processes."""

import contextlib
import json
import os
import re
import secrets
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from types import TracebackType

from rheostat.model.configuration import NodeKind
from rheostat.model.errors import RheostatError
from rheostat.model.node import Usage
from rheostat.model.secrets import properties, write_private
from rheostat.services import cgroups, cleanup_process
from rheostat.services.cleanup import Cleanup
from rheostat.services.interrupts import uninterrupted
from rheostat.services.java import java_version, spark_home
from rheostat.services.usage import session_usage

LOOPBACK = "127.0.0.1"
START_SECONDS = 60.0
END_SECONDS = 5.0  # for the kernel to remove a process that was killed
SHARED_SETTINGS = ("spark.authenticate", "spark.network.", "spark.rpc.", "spark.ssl.")
DAEMON_MEMORY = "256m"
_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"


@dataclass
class Worker:
    """A Worker process; ready once it registered with the Master."""

    name: str
    kind: NodeKind
    process: "subprocess.Popen[bytes]"
    log: Path
    group: cgroups.CpuGroup | None = None
    ready_at: float | None = None  # None: not registered yet
    port: str = ""  # of the Worker's web page, by which executors identify it

    @property
    def alive(self) -> bool:
        """Whether its process still runs."""
        return self.process.poll() is None


class LocalCluster:
    """A Master and the Workers that are added to it, as a context manager.

    Everything it starts is registered with a cleanup process, which acts when this process ends, however it
    ends: nothing outlives the run.
    """

    def __init__(
        self,
        warn: Callable[[str], None] = lambda _: None,
        now: Callable[[], float] = time.monotonic,
        start_seconds: float = START_SECONDS,
        settings: Mapping[str, str] = {},
    ) -> None:
        """Start the Master; it and the Workers get those settings on which a cluster must agree."""
        java_version()
        self._home = spark_home()
        self._now, self._start_seconds = now, start_seconds
        self._workers: dict[str, Worker] = {}
        self._ordered = 0
        self._id = f"rheostat-{os.getpid()}-{secrets.token_hex(3)}"
        problem = cgroups.problem()
        self.has_quotas = problem is None
        if problem:
            warn(problem)
        self._cleanup: Cleanup | None = None
        try:
            with uninterrupted():
                self.folder = Path(tempfile.mkdtemp(prefix=f"{self._id}-"))
                self._cleanup = Cleanup()
                self._register("folder", str(self.folder))
            self._shared_settings = self._write_shared_settings(settings)
            self._master, log = self._start(
                "master",
                [_MASTER, "--host", LOOPBACK, "--port", "0", "--webui-port", "0", *self._shared_settings],
            )
            self.url = self._wait_for_log(self._master, log, r"(spark://127\.0\.0\.1:\d+)")
            page = self._wait_for_log(self._master, log, r"MasterWebUI.* started at http://[^:]+:(\d+)")
            self._state = f"http://{LOOPBACK}:{page}/json/"
        except BaseException:
            self.close()
            raise

    def workers(self) -> tuple[Worker, ...]:
        return tuple(self._workers.values())

    def add(self, kind: NodeKind) -> Worker:
        """Start a Worker; `wait` for it, then `limit` it to its cores.

        It starts without a quota: a rented machine boots with all its cores, too, and with half a core
        it takes 18 s instead of 5 until an executor is usable (docs/decisions/0006).
        """
        self._ordered += 1
        name = f"n{self._ordered}"
        with uninterrupted():
            group = cgroups.CpuGroup.create(f"{self._id}-{name}") if self.has_quotas else None
            if group:
                self._register("cgroup", str(group.path))
        memory = ["--cores", str(kind.slots), "--memory", f"{round(kind.memory_mb)}m"]
        place = [
            *("--host", LOOPBACK),
            *("--port", "0"),
            *("--webui-port", "0"),
            *("--work-dir", str(self.folder / name)),
        ]
        process, log = self._start(name, [_WORKER, *place, *memory, *self._shared_settings, self.url], group)
        worker = Worker(name, kind, process, log, group)
        self._workers[name] = worker
        return worker

    def wait(self, name: str) -> Worker:
        """Wait until a Worker has registered; if it is late, remove it and show its log in the error."""
        worker = self._workers[name]
        try:
            self._wait_for_log(worker.process, worker.log, r"Worker: (Successfully registered) with master")
            worker.port = self._wait_for_log(
                worker.process, worker.log, r"WorkerWebUI.* started at http://[^:]+:(\d+)"
            )
        except RheostatError:
            self.remove(name)
            raise
        worker.ready_at = self._now() if worker.ready_at is None else worker.ready_at
        return worker

    def limit(self, name: str) -> None:
        """Limit a Worker to the cores of its kind from now on, if quotas can be set."""
        worker = self._workers[name]
        if worker.group:
            worker.group.limit(worker.kind.cores)

    def lift(self, name: str) -> None:
        """Lift a Worker's limit, so that its next executors start as fast as those of a new Worker."""
        worker = self._workers[name]
        if worker.group:
            worker.group.lift()

    def usage(self, name: str) -> Usage:
        """CPU seconds since the start and bytes in memory, of the Worker and all its child processes."""
        return session_usage(self._workers[name].process.pid)

    def keep_session(self, pid: int) -> Callable[[], None]:
        """End this process and its children, too, when the run ends.

        Return a function to call when they have ended earlier, because the pid may be used again.
        """
        self._register("session", str(pid))
        return lambda: self._discard("session", str(pid))

    def registered(self) -> int:
        """How many Workers the Master counts as alive."""
        return len(self._registered_ports())

    def is_registered(self, name: str) -> bool:
        """Whether the Master counts this node's Worker as alive."""
        return self._workers[name].port in self._registered_ports()

    def _registered_ports(self) -> list[str]:
        """The web page ports of the Workers that the Master counts as alive; OSError if it does not say."""
        try:
            with urllib.request.urlopen(self._state, timeout=10) as answer:
                workers = json.load(answer)["workers"]
            return [w["webuiaddress"].rpartition(":")[2] for w in workers if w["state"] == "ALIVE"]
        except (HTTPException, ValueError, LookupError, TypeError) as error:  # it died while answering
            raise OSError(f"the Master's answer is incomplete: {error}") from None

    def remove(self, name: str) -> None:
        """Kill a Worker and its executors, and remove its control group.

        The Worker is not asked to end: while it shuts down, its Master still gives it executors. Each of them
        fails, and after ten the Master drops the application.
        """
        if name not in self._workers:
            raise RheostatError(f"there is no node {name!r}")
        worker = self._workers.pop(name)
        worker.process.kill()
        cleanup_process.end_session(worker.process.pid)
        worker.process.wait()
        self._discard("session", str(worker.process.pid))
        if worker.group:
            cleanup_process.remove_cgroup(worker.group.path)
            self._discard("cgroup", str(worker.group.path))

    def close(self) -> None:
        """Stop everything, in bounded time; the cleanup process does the same if this one dies."""
        if self._cleanup is None:
            return
        self._cleanup.close()
        for process in [
            *(worker.process for worker in self._workers.values()),
            *filter(None, [getattr(self, "_master", None)]),
        ]:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(END_SECONDS)
        self._workers.clear()

    def __enter__(self) -> "LocalCluster":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write_shared_settings(self, settings: Mapping[str, str]) -> list[str]:
        """Write them to a private file, not onto a command line that every user of the machine can see."""
        shared = {key: value for key, value in settings.items() if key.startswith(SHARED_SETTINGS)}
        if not shared:
            return []
        shared["spark.ssl.standalone.enabled"] = "false"  # of the pages, which are for this process alone
        path = self.folder / "cluster.conf"
        write_private(path, properties(shared))
        return ["--properties-file", str(path)]

    def _start(
        self, name: str, arguments: list[str], group: cgroups.CpuGroup | None = None
    ) -> "tuple[subprocess.Popen[bytes], Path]":
        log = self.folder / f"{name}.log"
        command = [str(self._home / "bin" / "spark-class"), *arguments]
        settings = {
            "SPARK_HOME": str(self._home),
            "SPARK_LOCAL_IP": LOOPBACK,
            "SPARK_DAEMON_MEMORY": DAEMON_MEMORY,
            "SPARK_LOCAL_DIRS": str(self.folder / "scratch"),
            # Libraries that a JVM unpacks stay when it is killed; here they go with the cluster.
            "SPARK_DAEMON_JAVA_OPTS": f"{os.environ.get('SPARK_DAEMON_JAVA_OPTS', '')} "
            f'"-Djava.io.tmpdir={self.folder}"'.strip(),
        }
        with log.open("wb") as out, uninterrupted():
            process = subprocess.Popen(
                group.command(command) if group else command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env={**os.environ, **settings},
                start_new_session=True,
            )
            self._register("session", str(process.pid))
        return process, log

    def _wait_for_log(self, process: "subprocess.Popen[bytes]", log: Path, pattern: str) -> str:
        """Wait until a process logged a line, and return the part of it in parentheses."""
        until = time.monotonic() + self._start_seconds
        while time.monotonic() < until:
            match = re.search(pattern, log.read_text(errors="replace"))
            if match:
                return match.group(1)
            if process.poll() is not None:
                raise RheostatError(f"{log.stem} ended at its start: {_last_line(log)}")
            time.sleep(0.05)
        raise RheostatError(f"{log.stem} was not ready within {self._start_seconds:g} s: {_last_line(log)}")

    def _register(self, kind: str, value: str) -> None:
        assert self._cleanup is not None
        self._cleanup.add(kind, value)

    def _discard(self, kind: str, value: str) -> None:
        assert self._cleanup is not None
        self._cleanup.discard(kind, value)


def _last_line(log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1][:300] if lines else "it logged nothing"
