"""Finds Java and Spark on this machine, without starting either."""

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

from rheostat.model.errors import UserError

OLDEST_JAVA = 17
HOW_TO_JAVA = (
    "install Java 17 or later (Debian, Ubuntu: apt install openjdk-17-jre-headless) or set JAVA_HOME"
)
HOW_TO_SPARK = "install Rheostat with Spark: pip install 'rheostat[spark]'"


def java_command() -> str:
    """The Java that Spark would use: that of JAVA_HOME, or the first of the path."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None or (home and not Path(java).exists()):
        raise UserError(f"no Java was found{' in JAVA_HOME' if home else ''}: {HOW_TO_JAVA}")
    return java


def java_version() -> int:
    """The major version of the Java that Spark would use; UserError says what to do when it will not work."""
    java = java_command()
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UserError(f"{java} cannot be run ({error}): {HOW_TO_JAVA}") from None
    version = parse_version(done.stderr + done.stdout)
    if version is None:
        raise UserError(f"{java} does not tell its version: {HOW_TO_JAVA}")
    if version < OLDEST_JAVA:
        raise UserError(f"{java} is version {version}, Spark 4 needs {OLDEST_JAVA} or later: {HOW_TO_JAVA}")
    return version


def parse_version(text: str) -> int | None:
    """Read the major version out of `java -version`.

    >>> parse_version('openjdk version "17.0.15" 2025-04-15'), parse_version('java version "1.8.0_402"')
    (17, 8)
    """
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(found.group(1)) if found else None


def spark_home() -> Path:
    """Where Spark lies: SPARK_HOME, or the installed pyspark package."""
    stated = os.environ.get("SPARK_HOME")
    found = importlib.util.find_spec("pyspark")
    if stated:
        home = Path(stated)
    elif found is not None and found.origin is not None:
        home = Path(found.origin).parent
    else:
        raise UserError(f"Spark is not installed: {HOW_TO_SPARK}")
    if not (home / "bin" / "spark-class").exists():
        raise UserError(f"{home} holds no Spark: unset SPARK_HOME, or {HOW_TO_SPARK}")
    return home
