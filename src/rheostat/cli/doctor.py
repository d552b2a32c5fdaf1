"""`rheostat doctor`: what this machine lacks for running Spark, and what to do about it."""

import importlib.metadata
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass

import typer

from rheostat.cli import console
from rheostat.model.errors import UserError
from rheostat.services import cgroups
from rheostat.services.java import java_version, spark_home

SPARK_VERSION = "4.3"
LEAST_MEMORY_GB = 4.0


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    what: str
    good: bool
    says: str
    needed: bool = True  # whether Spark runs cannot do without it


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("doctor", epilog="Example: rheostat doctor --json")(_doctor)


def _doctor(as_json: bool = typer.Option(False, "--json", help="Print JSON for programs.")) -> None:
    """Say what this machine lacks. Checks Java, Spark, control groups, ports, memory and Kafka."""
    findings = [check() for check in CHECKS]
    broken = [finding for finding in findings if finding.needed and not finding.good]
    if as_json:
        console.print_json(
            [{"what": f.what, "good": f.good, "needed": f.needed, "says": f.says} for f in findings]
        )
    else:
        for finding in findings:
            mark = "ok  " if finding.good else "FAIL" if finding.needed else "note"
            console.out.print(f"{mark} {finding.what}: {finding.says}", markup=False)
    if broken:
        raise typer.Exit(1)


def java() -> Finding:
    """Spark needs Java."""
    try:
        return Finding("Java", True, f"version {java_version()}")
    except UserError as error:
        return Finding("Java", False, str(error))


def spark() -> Finding:
    """The pyspark package brings all of Spark."""
    try:
        home = spark_home()
    except UserError as error:
        return Finding("Spark", False, str(error))
    try:
        version = importlib.metadata.version("pyspark")
    except importlib.metadata.PackageNotFoundError:
        return Finding("Spark", True, f"at {home}, of a version that pip does not know")
    if not version.startswith(SPARK_VERSION + "."):
        wanted = f"Rheostat is made for {SPARK_VERSION}: pip install 'rheostat[spark]'"
        return Finding("Spark", False, f"pyspark {version} is installed, {wanted}")
    return Finding("Spark", True, f"pyspark {version}")


def control_groups() -> Finding:
    """Without them a node on this machine is not limited to its cores."""
    problem = cgroups.problem()
    if problem:
        return Finding(
            "control groups", False, f"{problem}; run as root, or delegate a cpu controller", needed=False
        )
    return Finding("control groups", True, "a node can be limited to its cores")


def ports() -> Finding:
    """Master, Workers and the driver listen on loopback, on ports that are free."""
    from rheostat.services.local_cluster import LOOPBACK

    try:
        with socket.socket() as probe:
            probe.bind((LOOPBACK, 0))
            return Finding("ports", True, f"{LOOPBACK} gives free ports")
    except OSError as error:
        return Finding("ports", False, f"{LOOPBACK} gives no port ({error}); check the loopback interface")


def memory() -> Finding:
    """A driver, a Master and two small nodes need a few gigabytes."""
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9
    if free < LEAST_MEMORY_GB:
        return Finding(
            "memory",
            False,
            f"{free:.1f} GB free; about {LEAST_MEMORY_GB:g} are needed: end other programs",
            False,
        )
    return Finding("memory", True, f"{free:.1f} GB free")


def kafka_archives() -> Finding:
    """Only streams from and to Kafka need them."""
    from rheostat.services import kafka_broker

    missing = [bundle.name for bundle in (kafka_broker.BROKER, kafka_broker.CONNECTOR) if not bundle.cached()]
    if missing:
        how = "`rheostat kafka fetch` gets them from Maven Central (60 MB)"
        return Finding("Kafka", False, f"{' and '.join(missing)} are not here yet; {how}", needed=False)
    return Finding("Kafka", True, f"broker and connector are in {kafka_broker.BROKER.folder.parent}")


CHECKS: tuple[Callable[[], Finding], ...] = (java, spark, control_groups, ports, memory, kafka_archives)
