"""Warm executors: they rehearse the last batch before their first task (docs/decisions/0007).

The work is done by a Spark plugin, `Rehearsal.java`. It is compiled once per user by Janino, which ships with
Spark, so no JDK and no build step are needed.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from rheostat.model.errors import RheostatError
from rheostat.services.java import spark_home
from rheostat.services.maven import cache_folder

PLUGIN = "rheostat.Rehearsal"
BUDGET = "spark.rheostat.rehearsal.seconds"
LIMIT = "spark.rheostat.rehearsal.limitSeconds"  # after this, no stage is begun even in the first round
SECONDS = 4.0  # no round begins later; the first alone takes about 3 s on two free cores
_COMPILER = "org.codehaus.commons.compiler.samples.CompilerDemo"
_BUILD_SECONDS = 120.0


def executor_settings(
    given: Mapping[str, str] | None = None,
    warn: Callable[[str], None] = lambda _: None,
) -> dict[str, str]:
    """Spark settings for warm executors, to be set before the session starts; `given` holds the user's own.

    It is empty if the plugin cannot be built: executors then start cold, as with plain Spark.
    """
    try:
        jar = _jar()
    except (OSError, subprocess.SubprocessError, RheostatError) as error:
        warn(f"new executors start cold, their plugin cannot be built: {error}")
        return {}
    stated = given or {}
    return {
        "spark.plugins": _joined(stated.get("spark.plugins"), PLUGIN),
        "spark.jars": _joined(stated.get("spark.jars"), str(jar)),
        BUDGET: stated.get(BUDGET, str(SECONDS)),
    }


def warmed(jvm: Any) -> frozenset[str]:
    """The ids of the executors that finished their rehearsal; `jvm` is the driver's, through py4j.

    Spark counts an executor as registered before its plugins have finished.
    """
    return frozenset(filter(None, str(jvm.rheostat.Rehearsal.ready()).split(",")))


def notes(jvm: Any) -> Iterator[str]:
    """Messages about rehearsals that failed since the last call; their executors have ended."""
    while text := jvm.rheostat.Rehearsal.note():
        yield str(text)


def _joined(stated: str | None, ours: str) -> str:
    return f"{stated},{ours}" if stated else ours


def _jar() -> Path:
    """The compiled plugin: built on the first call, then cached by the hash of its sources."""
    source = files(__package__).joinpath("java", "Rehearsal.java").read_bytes()
    jars = spark_home() / "jars"
    made_from = source + "\n".join(sorted(jar.name for jar in jars.glob("spark-*.jar"))).encode()
    jar = cache_folder() / f"rehearsal-{hashlib.sha256(made_from).hexdigest()[:16]}.jar"
    if not jar.exists():
        jar.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=jar.parent) as folder:
            _build(source, jars, Path(folder)).replace(
                jar
            )  # atomic, because other processes may build it too
    return jar


def _build(source: bytes, jars: Path, folder: Path) -> Path:
    text, classes, jar = folder / "Rehearsal.java", folder / "classes", folder / "plugin.jar"
    text.write_bytes(source)
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java") or "java"
    path = os.pathsep.join(str(jar) for jar in sorted(jars.glob("*.jar")))
    command = [java, "-cp", str(jars / "*"), _COMPILER, "-d", str(classes), "-classpath", path, str(text)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_BUILD_SECONDS, check=False)
    built = sorted(classes.rglob("*.class"))
    if done.returncode or not built:  # Janino exits with 0 even if it rejects a source
        raise RheostatError((done.stderr or done.stdout).strip()[:300] or "Janino wrote no class")
    with zipfile.ZipFile(jar, "w") as archive:
        for file in built:
            archive.write(file, file.relative_to(classes))
    return jar
