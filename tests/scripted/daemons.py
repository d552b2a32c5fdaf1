"""Scripts in place of Spark's daemons and of Java: they say what those say, and sleep."""

from pathlib import Path

import pytest

SPARK_CLASS = """#!/bin/sh
echo "Starting Spark master at spark://127.0.0.1:7077"
echo "MasterWebUI: Bound MasterWebUI, and started at http://127.0.0.1:8080"
echo "Worker: Successfully registered with master"
echo "WorkerWebUI: Bound WorkerWebUI, and started at http://127.0.0.1:$$"
sleep 600 &
wait
"""


def install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let whatever starts Spark in this test start the scripts; each Worker's port is its process id."""
    for path, text in (
        (folder / "spark" / "bin" / "spark-class", SPARK_CLASS),
        (folder / "java" / "bin" / "java", "#!/bin/sh\necho 'openjdk version \"17.0.1\"' >&2\n"),
    ):
        path.parent.mkdir(parents=True)
        path.write_text(text)
        path.chmod(0o755)
    monkeypatch.setenv("SPARK_HOME", str(folder / "spark"))
    monkeypatch.setenv("JAVA_HOME", str(folder / "java"))
