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
    """Return the Java that Spark would use: from JAVA_HOME, or the first in PATH."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None or (home and not Path(java).exists()):
        raise UserError(f"no Java was found{' in JAVA_HOME' if home else ''}: {HOW_TO_JAVA}")
    return java


def java_version() -> int:
    """Return the major version of the Java that Spark would use; UserError if it is missing or too old."""
    java = java_command()
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UserError(f"{java} cannot be run ({error}): {HOW_TO_JAVA}") from None
    version = parse_version(done.stderr + done.stdout)
    if version is None:
        raise UserError(f"{java} did not print its version: {HOW_TO_JAVA}")
    if version < OLDEST_JAVA:
        raise UserError(f"{java} is version {version}, Spark 4 needs {OLDEST_JAVA} or later: {HOW_TO_JAVA}")
    return version


def parse_version(text: str) -> int | None:
    """Read the major version out of `java -version`.

    >>> parse_version('openjdk version "17.0.15" 2025-04-15'), parse_version('java version "1.8.0_402"')
    (17, 8)
    """
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(match.group(1)) if match else None


def spark_home() -> Path:
    """Return Spark's folder: SPARK_HOME, or the installed pyspark package."""
    given = os.environ.get("SPARK_HOME")
    package = importlib.util.find_spec("pyspark")
    if given:
        home = Path(given)
    elif package is not None and package.origin is not None:
        home = Path(package.origin).parent
    else:
        raise UserError(f"Spark is not installed: {HOW_TO_SPARK}")
    if not (home / "bin" / "spark-class").exists():
        raise UserError(f"{home} holds no Spark: unset SPARK_HOME, or {HOW_TO_SPARK}")
    return home
