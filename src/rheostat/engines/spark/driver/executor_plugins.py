"""Our plugins in every executor: it tells what it uses, and how long rows held tasks; it rehearses at first.

One class of the same jar listens to queries in the driver. All are compiled once per user by Janino, which
ships with Spark, so no JDK and no build step are needed.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path

from rheostat.engines.spark.driver import executor_vitals, service_times, warm_executors
from rheostat.model.errors import RheostatError
from rheostat.services.java import spark_home
from rheostat.services.maven import cache_folder

_SOURCES = ("FileSinkLogs.java", "Rehearsal.java", "ServiceTimes.java", "Vitals.java")
_COMPILER = "org.codehaus.commons.compiler.samples.CompilerDemo"
_LISTENERS = "spark.sql.streaming.streamingQueryListeners"
_BUILD_SECONDS = 120.0


def executor_settings(
    given: Mapping[str, str] | None = None,
    warn: Callable[[str], None] = lambda _: None,
    warm: bool = True,
    realtime: bool = False,
) -> dict[str, str]:
    """Spark settings that bring the plugins, for before the session starts; `given` holds the user's own.

    It is empty if they cannot be built: executors then start cold and tell nothing, as with plain Spark.
    """
    try:
        jar = _jar()
    except (OSError, subprocess.SubprocessError, RheostatError) as error:
        warn(f"executors start cold and do not tell what they use, as no plugin can be built: {error}")
        return {}
    stated = given or {}
    # In this order: a rehearsal is told of, too.
    plugins = (
        executor_vitals.PLUGIN,
        *((service_times.PLUGIN,) if realtime else ()),
        *((warm_executors.PLUGIN,) if warm else ()),
    )
    return {
        "spark.plugins": _joined(stated.get("spark.plugins"), ",".join(plugins)),
        "spark.jars": _joined(stated.get("spark.jars"), str(jar)),
        _LISTENERS: _joined(stated.get(_LISTENERS), "rheostat.FileSinkLogs"),
        warm_executors.BUDGET: stated.get(warm_executors.BUDGET, str(warm_executors.SECONDS)),
    }


def _joined(stated: str | None, ours: str) -> str:
    return f"{stated},{ours}" if stated else ours


def _jar() -> Path:
    """The compiled plugins: built on the first call, then cached by the hash of their sources."""
    sources = {name: files(__package__).joinpath("java", name).read_bytes() for name in _SOURCES}
    jars = spark_home() / "jars"
    spark = "\n".join(sorted(jar.name for jar in jars.glob("spark-*.jar"))).encode()
    made_from = b"".join((*sources.values(), spark))
    jar = cache_folder() / f"plugins-{hashlib.sha256(made_from).hexdigest()[:16]}.jar"
    if not jar.exists():
        jar.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=jar.parent) as folder:
            built = _build(sources, jars, Path(folder))
            built.replace(jar)  # atomic, because other processes may build it too
    return jar


def _build(sources: Mapping[str, bytes], jars: Path, folder: Path) -> Path:
    texts, classes, jar = [folder / name for name in sources], folder / "classes", folder / "plugins.jar"
    for text in texts:
        text.write_bytes(sources[text.name])
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java") or "java"
    path = os.pathsep.join(str(jar) for jar in sorted(jars.glob("*.jar")))
    command = [java, "-cp", str(jars / "*"), _COMPILER, "-d", str(classes), "-classpath", path]
    command += map(str, texts)
    done = subprocess.run(command, capture_output=True, text=True, timeout=_BUILD_SECONDS, check=False)
    built = sorted(classes.rglob("*.class"))
    if done.returncode or not built:  # Janino exits with 0 even if it rejects a source
        raise RheostatError((done.stderr or done.stdout).strip()[:300] or "Janino wrote no class")
    with zipfile.ZipFile(jar, "w") as archive:
        for file in built:
            archive.write(file, file.relative_to(classes))
    return jar
