"""A real Kafka broker on loopback: one process that is its own controller (KRaft), from Maven artifacts."""

import json
import random
import shutil
import socket
import subprocess
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from rheostat.model.errors import RheostatError, UserError
from rheostat.services import cleanup_process
from rheostat.services.cleanup import sessions_ended_on_exit
from rheostat.services.interrupts import uninterrupted
from rheostat.services.java import java_command
from rheostat.services.kafka_topics import (
    answers,
    create_topic,
    delete_topics,
    ends,
    must_answer,
    starts,
    topics,
)
from rheostat.services.maven import Bundle, resolve
from rheostat.services.processes import started_at

__all__ = [
    "Broker",
    "answers",
    "attach",
    "connector_jars",
    "create_topic",
    "delete_topics",
    "ends",
    "ensure_running",
    "must_answer",
    "running",
    "start",
    "starts",
    "topics",
]

LOOPBACK = "127.0.0.1"
START_SECONDS = 120.0
STOP_SECONDS = 20.0
HEAP = "256m"
LOGGING = {"defaultLogLevel": "warn", "showDateTime": "true", "dateTimeFormat": "yyyy-MM-dd HH:mm:ss,SSS"}
NOTE, LOG = "broker.json", "broker.log"

BROKER = Bundle(
    "kafka-broker-4.1.0",
    ("org.apache.kafka:kafka_2.13:4.1.0", "org.slf4j:slf4j-simple:1.7.36"),
    with_dependencies=True,
    otherwise="use a running broker: give --servers or --kafka HOST:PORT",
)
# The connector of Spark 4.2 was tried with Spark 4.3.0, in both modes (docs/decisions/0011).
CONNECTOR = Bundle(
    "spark-kafka-4.2.0",
    (
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
        "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
        "org.apache.kafka:kafka-clients:3.9.1",
        "org.apache.commons:commons-pool2:2.12.1",
    ),
    with_dependencies=False,  # the rest comes with Spark
    otherwise="",
)


def connector_jars(say: Callable[[str], None] = lambda _: None) -> tuple[Path, ...]:
    """Return what Spark needs in `spark.jars` to read and write Kafka; downloaded at the first use."""
    return resolve(CONNECTOR, say)


@dataclass
class Broker:
    """A running broker. Its folder holds its data, its settings and its log."""

    servers: str
    pid: int
    folder: Path
    _process: "subprocess.Popen[bytes] | None" = field(default=None, repr=False, compare=False)

    @property
    def alive(self) -> bool:
        """Whether its process still runs."""
        current = attach(self.folder)
        return current is not None and current.pid == self.pid

    def stop(self) -> None:
        """Stop it; its data stay for the next start in its folder."""
        if self.alive:
            cleanup_process.end_session(self.pid, STOP_SECONDS)
        if self._process is not None:
            self._process.wait()


def attach(folder: Path) -> Broker | None:
    """Return the broker that runs in a folder, whoever started it."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        note = json.loads((folder / NOTE).read_text())
        if started_at(int(note["pid"])) == note["began"]:
            return Broker(str(note["servers"]), int(note["pid"]), folder.resolve())
    return None


def start(
    folder: Path,
    port: int | None = None,
    keep: Callable[[int], None] | None = None,
    settings: Mapping[str, str] = {},
    say: Callable[[str], None] = lambda _: None,
) -> Broker:
    """Start a broker and wait until it answers; an earlier broker's folder gives it data and port.

    It outlives this process unless `keep` registers its pid for cleanup (`LocalCluster.keep_session`, or see
    `running`).
    """
    folder = folder.resolve()
    if attach(folder):
        raise UserError(f"a broker already runs in {folder}; stop it with `rheostat kafka down`")
    jars = resolve(BROKER, say)
    classes = [java_command(), f"-Xmx{HEAP}", "-XX:+ExitOnOutOfMemoryError"]
    classes += [f"-Dorg.slf4j.simpleLogger.{key}={value}" for key, value in LOGGING.items()]
    classes += ["-cp", ":".join(map(str, jars))]
    port = port or _earlier_port(folder) or free_port()
    if not _is_free(port):
        raise UserError(f"port {port} of {LOOPBACK} is in use; give another port, or stop what listens there")
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "server.properties"
    properties = {**_settings(port), **settings}
    file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    process = None
    try:
        with (folder / LOG).open("ab") as log:
            _format(classes, file, log.fileno())
            with uninterrupted():
                process = subprocess.Popen(
                    [*classes, "kafka.Kafka", file.name],
                    cwd=folder,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
                if keep:
                    keep(process.pid)
        broker = Broker(f"{LOOPBACK}:{port}", process.pid, folder, process)
        note = {"servers": broker.servers, "pid": broker.pid, "began": started_at(broker.pid)}
        (folder / NOTE).write_text(json.dumps(note))
        _wait(broker, process)
    except BaseException:
        if process is not None:
            cleanup_process.end_session(process.pid, STOP_SECONDS)
            process.wait()
        raise
    return broker


def ensure_running(
    folder: Path, port: int, say: Callable[[str], None] = lambda _: None
) -> tuple[Broker, bool]:
    """Return the folder's broker, and whether it had to be started."""
    broker = attach(folder)
    if broker is None:
        return start(folder, port, say=say), True
    if broker.servers != f"{LOOPBACK}:{port}":
        raise UserError(
            f"a broker already runs in {folder} at {broker.servers}; stop it first, or give another --folder"
        )
    return broker, False


@contextmanager
def running(
    folder: Path,
    port: int | None = None,
    settings: Mapping[str, str] = {},
    say: Callable[[str], None] = lambda _: None,
) -> Iterator[Broker]:
    """Run a broker within a block; it stops with the block, or with this process."""
    with sessions_ended_on_exit() as keep:
        broker = start(folder, port, keep, settings, say)
        try:
            yield broker
        finally:
            broker.stop()


def free_port() -> int:
    """Return a free port, below those that the system gives to outgoing connections.

    Otherwise a client that retries while its broker is down could be given the very port it calls.
    """
    for port in random.sample(range(20_000, 32_000), 200):
        if _is_free(port):
            return port
    raise RheostatError(f"{LOOPBACK} has no free port between 20000 and 32000")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(
            socket.SOL_SOCKET, socket.SO_REUSEADDR, 1
        )  # as Java does: a closed connection may linger
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def _settings(port: int) -> dict[str, str]:
    controller = free_port()
    single = dict.fromkeys(
        (
            "offsets.topic.replication.factor",
            "offsets.topic.num.partitions",
            "transaction.state.log.replication.factor",
            "transaction.state.log.num.partitions",
            "transaction.state.log.min.isr",
            "share.coordinator.state.topic.replication.factor",
            "share.coordinator.state.topic.min.isr",
            "share.coordinator.state.topic.num.partitions",
            "num.recovery.threads.per.data.dir",
        ),
        "1",
    )
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{LOOPBACK}:{controller}",
        "listeners": f"PLAINTEXT://{LOOPBACK}:{port},CONTROLLER://{LOOPBACK}:{controller}",
        "advertised.listeners": f"PLAINTEXT://{LOOPBACK}:{port}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": "data",  # relative to its folder: a comma in a full path would make two paths of it
        "auto.create.topics.enable": "false",  # a misspelt topic is an error, not a new topic
        "group.initial.rebalance.delay.ms": "0",
        "broker.session.timeout.ms": "3000",  # after a kill, the next start is refused for this long
        "broker.heartbeat.interval.ms": "500",
        "num.network.threads": "2",
        "num.io.threads": "4",
        "log.cleaner.dedupe.buffer.size": str(8 << 20),
        **single,
    }


def _format(classes: list[str], file: Path, log: int) -> None:
    """Give a new folder its cluster id."""
    if (file.parent / "data" / "meta.properties").exists():
        return
    cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    # --cluster-id=ID: an id may begin with a dash
    command = [*classes, "kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", "-c", file.name]
    done = subprocess.run(
        command, cwd=file.parent, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False
    )
    if done.returncode:
        raise RheostatError(f"Kafka failed to format {file.parent}: {_last_error(file.parent / LOG)}")


def _wait(broker: Broker, process: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        if process.poll() is not None:
            raise RheostatError(f"the broker failed to start: {_last_error(broker.folder / LOG)}")
        if answers(broker.servers, 1.0):
            return
        time.sleep(0.05)
    raise RheostatError(
        f"the broker did not answer within {START_SECONDS:g} s: {_last_error(broker.folder / LOG)}"
    )


def _earlier_port(folder: Path) -> int | None:
    """Return the port of the folder's last broker, so that its clients find the next one."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        port = int(str(json.loads((folder / NOTE).read_text())["servers"]).rpartition(":")[2])
        return port if _is_free(port) else None
    return None


def _last_error(log: Path) -> str:
    """Return the last error in a log, or else its last line."""
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if " ERROR " in line or "xception" in line]
    return (errors or lines or ["the log is empty"])[-1][:300]


def delete_data(folder: Path) -> None:
    """Delete only what a broker wrote: the folder may hold other files."""
    for name in ("data", "server.properties", NOTE, LOG):
        path = folder / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    if not any(folder.iterdir()):
        folder.rmdir()
