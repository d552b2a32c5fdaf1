"""What an executor tells of itself, by the plugin as it is shipped, in a JVM of its own."""

import os
import subprocess
import sys
from pathlib import Path

from rheostat.engines.spark.driver import executor_vitals
from rheostat.engines.spark.driver.executor_plugins import executor_settings
from rheostat.engines.spark.protocol import Vitals
from rheostat.services.java import spark_home

MEGABYTE = 2**20
SCRIPT = "org.codehaus.commons.compiler.samples.ScriptDemo"
LOOK = """
try {
  Process python = new ProcessBuilder(new String[] {"PYTHON", "-c", "import workers"}).start();
  if (python.getInputStream().read() != 'r') throw new RuntimeException("no workers");
  System.out.println(new rheostat.Vitals.Body().look());
  python.getOutputStream().close();
  python.waitFor();
} catch (Exception error) { throw new RuntimeException(error); }
"""
WORKERS = """
import os
held = b"x" * (100 << 20)
children = [os.fork() for _ in range(3)]
if all(children):
    print("r", flush=True)
os.read(0, 1)
"""


def looked(folder: Path) -> Vitals:
    """What the plugin sees in a JVM that started a process with 100 MB, which forked seven more."""
    (folder / "workers.py").write_text(WORKERS)
    jars = f"{executor_settings(warm=False)['spark.jars']}{os.pathsep}{spark_home() / 'jars' / '*'}"
    script = LOOK.replace("PYTHON", sys.executable)
    command = ["java", "-cp", jars, SCRIPT, script]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=True, timeout=60)
    told = next(line for line in done.stdout.splitlines() if line.startswith('{"at":'))
    return executor_vitals.read(f"0 {told}")["0"]


def test_the_time_in_which_classes_were_loaded_is_known(tmp_path: Path) -> None:
    told = looked(tmp_path)
    assert told.load_seconds is not None
    assert 0.05 < told.load_seconds < 60.0


def test_memory_that_python_workers_share_counts_once(tmp_path: Path) -> None:
    told = looked(tmp_path)
    assert told.memory_bytes is not None
    assert 110 * MEGABYTE < told.memory_bytes < 250 * MEGABYTE
