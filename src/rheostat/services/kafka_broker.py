"""A real Kafka broker on loopback: one process that is its own controller (KRaft), from Maven's artifacts."""

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
    otherwise="use a broker that runs already: name it with --servers or --kafka HOST:PORT",
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
    """What Spark needs in `spark.jars` to read and write Kafka; fetched if this is the first time."""
    return resolve(CONNECTOR, say)


@dataclass
class Broker:
    """A running broker; its data, its settings and its log are in its folder."""

    servers: str
    pid: int
    folder: Path
    _process: "subprocess.Popen[bytes] | None" = field(default=None, repr=False, compare=False)

    @property
    def alive(self) -> bool:
        """Whether its process still runs."""
        noted = attach(self.folder)
        return noted is not None and noted.pid == self.pid

    def stop(self) -> None:
        """End it; its data stay, for the next start on its folder."""
        if self.alive:
            cleanup_process.end_session(self.pid, STOP_SECONDS)
        if self._process is not None:
            self._process.wait()


def attach(folder: Path) -> Broker | None:
    """The broker that runs on a folder, whoever started it."""
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
    """Start a broker and wait until it serves; on a folder of an earlier one, with its data and its port.

    It outlives this process unless `keep` registers its pid for cleanup (`LocalProvider.keep_session`, or see
    `running`).
    """
    folder = folder.resolve()
    if attach(folder):
        raise UserError(f"a broker runs on {folder} already; end it with `rheostat kafka down`")
    jars = resolve(BROKER, say)
    classes = [java_command(), f"-Xmx{HEAP}", "-XX:+ExitOnOutOfMemoryError"]
    classes += [f"-Dorg.slf4j.simpleLogger.{key}={value}" for key, value in LOGGING.items()]
    classes += ["-cp", ":".join(map(str, jars))]
    port = port or _earlier_port(folder) or free_port()
    if not _is_free(port):
        raise UserError(f"port {port} of {LOOPBACK} is taken; give another one, or end what listens there")
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "server.properties"
    lines = {**_settings(port), **settings}
    file.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
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


@contextmanager
def running(
    folder: Path,
    port: int | None = None,
    settings: Mapping[str, str] = {},
    say: Callable[[str], None] = lambda _: None,
) -> Iterator[Broker]:
    """A broker for as long as this process needs it, however this process ends."""
    with sessions_ended_on_exit() as keep:
        broker = start(folder, port, keep, settings, say)
        try:
            yield broker
        finally:
            broker.stop()


def free_port() -> int:
    """A port that nobody has, below those that the system gives to outgoing connections.

    A client that tries again while its broker is away could otherwise be given the very port it calls.
    """
    for port in random.sample(range(20_000, 32_000), 200):
        if _is_free(port):
            return port
    raise RheostatError(f"{LOOPBACK} has no free port between 20000 and 32000")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as Java does: an ended one may linger
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def _settings(port: int) -> dict[str, str]:
    controller = free_port()
    one = dict.fromkeys(
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
        "log.dirs": "data",  # in its folder, where it runs: a comma in a path would make two of it
        "auto.create.topics.enable": "false",  # a misspelt topic is an error, not a new topic
        "group.initial.rebalance.delay.ms": "0",
        "broker.session.timeout.ms": "3000",  # for so long after a kill its next start is refused
        "broker.heartbeat.interval.ms": "500",
        "num.network.threads": "2",
        "num.io.threads": "4",
        "log.cleaner.dedupe.buffer.size": str(8 << 20),
        **one,
    }


def _format(classes: list[str], file: Path, log: int) -> None:
    """Give a new folder its cluster id; a folder that has one keeps it."""
    if (file.parent / "data" / "meta.properties").exists():
        return
    cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    # --cluster-id=ID: an id may begin with a dash
    command = [*classes, "kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", "-c", file.name]
    done = subprocess.run(
        command, cwd=file.parent, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False
    )
    if done.returncode:
        raise RheostatError(f"Kafka cannot format {file.parent}: {_said(file.parent / LOG)}")


def _wait(broker: Broker, process: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        if process.poll() is not None:
            raise RheostatError(f"the broker ended at its start: {_said(broker.folder / LOG)}")
        if answers(broker.servers, 1.0):
            return
        time.sleep(0.05)
    raise RheostatError(f"the broker did not answer within {START_SECONDS:g} s: {_said(broker.folder / LOG)}")


def _earlier_port(folder: Path) -> int | None:
    """The port of the last broker on a folder, so that its clients find the next one."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        port = int(str(json.loads((folder / NOTE).read_text())["servers"]).rpartition(":")[2])
        return port if _is_free(port) else None
    return None


def _said(log: Path) -> str:
    """The last complaint in a log, else its last line."""
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    complaints = [line for line in lines if " ERROR " in line or "xception" in line]
    return (complaints or lines or ["it logged nothing"])[-1][:300]


def delete_data(folder: Path) -> None:
    """Delete what a broker wrote and nothing else: the folder may hold other files."""
    for name in ("data", "server.properties", NOTE, LOG):
        path = folder / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    if not any(folder.iterdir()):
        folder.rmdir()
