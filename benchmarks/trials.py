"""All trials of docs/trials.md: `python -m benchmarks.trials [--minutes N] [--out docs/trials.md]`.

Takes hours (about ten, reckoned), in as many sittings as you like: what is done is kept in its folder.
Our own runs lie in docs/trials, second by second: go on with a copy of them, or begin anew without.
First the tried policy against the two peers that bound it, three times; then, on the sines, all others once.
--show prints the commands.
"""

import argparse
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from rheostat.services import kafka_broker

SECONDS = 300
POLICY = "multilevel"
BOUND = "static-peak,spark-dra"
ALL = "static-min,static-peak,spark-dra,occupancy,joint,ds2"
REPEATS = 3
CURVES = {
    "stair": f"steps=4:duration={SECONDS}s",
    "square": f"period={SECONDS // 2}s:duration={SECONDS}s",
    "sine": f"period={SECONDS}s:duration={SECONDS}s",
}
# Application: rows/s at its lowest and highest. The highest keeps the most nodes about 80 % busy, as
# docs/simulator.md provisions for the peak: by the cores that a node used at several loads, or by the map in
# docs/benchmarking.md (ddos).
LOADS = {"wordcount": (7_000, 70_000), "topk": (3_200, 32_000), "ddos": (1_100, 11_000)}
REAL_TIME = ("linear", (10, 100))  # expensive rows: two cores cannot both send and serve cheap ones
SERVERS = "127.0.0.1:9092"  # in the command that is shown
BEGIN, END = "<!-- trials: begin -->", "<!-- trials: end -->"


def trials(servers: str) -> Iterator[tuple[str, list[str]]]:
    """Return the name and the options of each trial."""
    for app, (low, high) in LOADS.items():
        for shape, rest in CURVES.items():
            curve = f"{shape}:low={low}:high={high}:{rest}"
            yield f"{app}-{shape}", ["--app", app, "--curve", curve, *NODES, *SHORT_DAYS]
    app, (low, high) = REAL_TIME
    curve = f"sine:low={low}:high={high}:{CURVES['sine']}"
    more = ["--mode", "realtime", "--kafka", servers, "--partitions", "2"]
    yield f"{app}-realtime", ["--app", app, "--curve", curve, *REAL_TIME_NODES, *SHORT_DAYS, *more]


NODES = ["--nodes", "1:4", "--node", "cores=0.35,slots=2,memory_mb=1024", "--trigger", "5"]
REAL_TIME_NODES = ["--nodes", "1:4", "--node", "cores=0.35,slots=6,memory_mb=1024", "--trigger", "5"]
# JVMs of a real day have compiled their code and batches of a real day are larger than their bookkeeping.
SHORT_DAYS = [
    "--conf",
    "spark.executor.extraJavaOptions=-XX:TieredStopAtLevel=1",
    "--conf",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled=true",
]


def rounds(servers: str) -> Iterator[tuple[str, list[str], str, int]]:
    """Yield name, options, peers and repeats: first what the bounds need of every trial, then the rest."""
    for repeat in range(1, REPEATS + 1):
        for name, options in trials(servers):
            yield name, options, BOUND, repeat
    for name, options in trials(servers):
        for peers, repeat in peer_rounds(name)[1:]:
            yield name, options, peers, repeat


def peer_rounds(name: str) -> list[tuple[str, int]]:
    """The peers of a trial, and how often."""
    return [(BOUND, REPEATS), *([(ALL, 1)] if name.endswith("-sine") else [])]


def commands(servers: str, name: str, options: list[str], folder: Path) -> list[str]:
    """Return the command of a trial; the broker's port differs between machines."""
    lines = [" ".join(command(options, peers, repeat, folder)) for peers, repeat in peer_rounds(name)]
    return [f"rheostat {line.replace(servers, SERVERS)}" for line in lines]


def command(options: list[str], peers: str, repeat: int, folder: Path) -> list[str]:
    own = [
        "--policies",
        POLICY,
        "--peers",
        peers,
        "--repeat",
        str(repeat),
        "--seed",
        "1",
        "--out",
        str(folder),
    ]
    return ["trial", *options, *own]


def run(arguments: list[str], until: float) -> int:
    """Run a trial, and stop it cleanly when the time is up."""
    process = subprocess.Popen([sys.executable, "-m", "rheostat", *arguments])
    try:
        process.wait(max(1.0, until - time.monotonic()) if until < float("inf") else None)
    except subprocess.TimeoutExpired:
        process.terminate()  # a background job ignores an interrupt
    except SystemExit:
        process.terminate()
        raise
    finally:
        code = process.wait()
    return code


def document(folder: Path, out: Path, servers: str) -> None:
    """Put every trial's report between the marks of the document, its plot and its runs beside it."""
    parts = []
    for name, options in trials(servers):
        report = folder / name / "trial.md"
        if not report.exists() or not (folder / name / "trial.png").exists():
            continue
        shutil.copy(folder / name / "trial.png", out.parent / "images" / f"trial-{name}.png")
        for kept in (folder / name / "trial.json", *(folder / name).glob("*/*/result.json")):
            copy = out.with_suffix("") / kept.relative_to(folder)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(kept, copy)
        text = report.read_text().replace("(trial.png)", f"(images/trial-{name}.png)")
        text = re.sub(r"^# ", "## ", text)
        shown = "\n".join(f"    {line}" for line in commands(servers, name, options, Path(name)))
        parts.append(f"{text}\n{shown}\n")
    before, _, rest = out.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    out.write_text(f"{before}{BEGIN}\n\n" + "\n".join(parts) + f"\n{END}{after}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="of this sitting")
    parser.add_argument("--folder", type=Path, default=Path("trials"))
    parser.add_argument("--out", type=Path, help="a document with the two marks")
    parser.add_argument("--only", default="", help="trials whose name contains this")
    parser.add_argument("--show", action="store_true", help="print the commands, run nothing")
    asked = parser.parse_args()
    if asked.only and asked.out:
        parser.error("--out writes all trials: leave --only out")
    if asked.show:
        for name, options in trials(SERVERS):
            print("\n".join(commands(SERVERS, name, options, asked.folder / name)))
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    until = time.monotonic() + 60 * asked.minutes
    with kafka_broker.running(asked.folder / "broker") as broker:
        for name, options, peers, repeat in rounds(broker.servers):
            if asked.only in name and time.monotonic() < until:
                print(f"== {name}, {peers}, round {repeat}", flush=True)
                if code := run(command(options, peers, repeat, asked.folder / name), until):
                    print(f"   ended with exit code {code}", flush=True)
        if asked.out:
            document(asked.folder, asked.out, broker.servers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
