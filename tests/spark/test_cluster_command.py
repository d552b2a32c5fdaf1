"""`rheostat cluster` as a user runs it."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rheostat.cli.main import run

JOB = """
import sys
from pyspark.sql import SparkSession
spark = (SparkSession.builder.master(sys.argv[1]).config("spark.driver.host", "127.0.0.1")
         .config("spark.executor.memory", "512m").config("spark.cores.max", "2").getOrCreate())
print("sum", spark.range(1000).selectExpr("sum(id)").first()[0])
spark.stop()
"""


def test_a_spark_job_runs_on_the_cluster_and_ctrl_c_ends_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from rheostat.cli.main import run; run()", "cluster", "--json"]
    command += ["--nodes", "1", "--node", "cores=1,slots=2,memory_mb=1024"]
    job = tmp_path / "job.py"
    job.write_text(JOB)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as cluster:
        assert cluster.stdout is not None
        output = json.loads("".join(iter(cluster.stdout.readline, "}\n")) + "}")
        assert output["nodes"] == [{"name": "n1", "slots": 2, "cores": 1.0}]
        done = subprocess.run(
            [sys.executable, str(job), output["master"]],
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        assert "sum 499500" in done.stdout, done.stderr[-2000:]
        cluster.send_signal(signal.SIGINT)
        assert cluster.wait(timeout=60) == 0
        assert cluster.stderr is not None
        assert cluster.stderr.read().splitlines() == ["rheostat: interrupted: stopping the cluster"]


@pytest.mark.no_jvm
@pytest.mark.parametrize(
    "wrong", [["--nodes", "0"], ["--nodes", "99"], ["--seconds", "-1"], ["--node", "cores=x"]]
)
def test_nonsense_is_refused_before_anything_starts(
    wrong: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        run(["cluster", *wrong])
    assert ended.value.code == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
