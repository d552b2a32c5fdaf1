"""What this machine lacks for running Spark: one check per requirement, each with what to do about it."""

import importlib.metadata
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass

from rheostat.model.errors import UserError
from rheostat.services import cgroups
from rheostat.services.java import java_version, spark_home

LOOPBACK = "127.0.0.1"
SPARK_VERSION = "4.3"
MIN_FREE_MEMORY_GB = 4.0


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    subject: str
    ok: bool
    message: str
    required: bool = True  # whether Spark cannot run without it


def check_machine() -> list[Finding]:
    """Run every check."""
    return [check() for check in CHECKS]


def _java() -> Finding:
    try:
        return Finding("Java", True, f"version {java_version()}")
    except UserError as error:
        return Finding("Java", False, str(error))


def _spark() -> Finding:
    """The pyspark package brings all of Spark."""
    try:
        home = spark_home()
    except UserError as error:
        return Finding("Spark", False, str(error))
    try:
        version = importlib.metadata.version("pyspark")
    except importlib.metadata.PackageNotFoundError:
        return Finding("Spark", True, f"at {home}; its version is unknown, as pip did not install it")
    if not version.startswith(SPARK_VERSION + "."):
        remedy = f"Rheostat needs {SPARK_VERSION}: pip install 'rheostat[spark]'"
        return Finding("Spark", False, f"pyspark {version} is installed, {remedy}")
    return Finding("Spark", True, f"pyspark {version}")


def _control_groups() -> Finding:
    """Without control groups, a node on this machine is not limited to its cores."""
    problem = cgroups.problem()
    if problem:
        remedy = "run as root, or delegate a cpu controller"
        return Finding("control groups", False, f"{problem}; {remedy}", required=False)
    return Finding("control groups", True, "a node can be limited to its cores")


def _ports() -> Finding:
    """Master, Workers and the driver listen on free ports of the loopback interface."""
    try:
        with socket.socket() as probe:
            probe.bind((LOOPBACK, 0))
            return Finding("ports", True, f"{LOOPBACK} has free ports")
    except OSError as error:
        return Finding(
            "ports", False, f"no port is free on {LOOPBACK} ({error}); check the loopback interface"
        )


def _memory() -> Finding:
    """A driver, a Master and two small nodes need a few gigabytes."""
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9
    if free < MIN_FREE_MEMORY_GB:
        message = f"{free:.1f} GB free; about {MIN_FREE_MEMORY_GB:g} GB are needed: close other programs"
        return Finding("memory", False, message, required=False)
    return Finding("memory", True, f"{free:.1f} GB free")


def _kafka_archives() -> Finding:
    """Only streams from and to Kafka need them."""
    from rheostat.services import kafka_broker  # noqa: PLC0415 - imports the Kafka client, which is slow

    missing = [bundle.name for bundle in (kafka_broker.BROKER, kafka_broker.CONNECTOR) if not bundle.cached()]
    if missing:
        remedy = "`rheostat kafka fetch` downloads them from Maven Central (60 MB)"
        return Finding("Kafka", False, f"missing: {' and '.join(missing)}; {remedy}", required=False)
    return Finding("Kafka", True, f"broker and connector are in {kafka_broker.BROKER.folder.parent}")


CHECKS: tuple[Callable[[], Finding], ...] = (
    _java,
    _spark,
    _control_groups,
    _ports,
    _memory,
    _kafka_archives,
)
