"""An hour of square waves with scaling all the time: `python -m benchmarks.soak [--minutes 60] [--every 30]`.

Memory of the driver (Python and JVM) and of the controller must not grow: the linear trend of the second half
stays below 1 % of its mean in 10 minutes. The driver's heap has one size all along, as a JVM that resizes
it looks like a leak; what lives in it is what a full collection leaves, and must not grow either. The
journal stays within its bound, and no row is lost or doubled.
"""

import argparse
import re
import signal
import sys
import tempfile
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

import matplotlib
import numpy as np
import psutil
from tests.chaos.arena import PARTITIONS, StepController
from tests.chaos.rows import Sender, Sink
from tests.spark.controllers import eventually

from rheostat.journal.store import MAX_BYTES
from rheostat.model.secrets import properties, write_private
from rheostat.run.folder import JOURNAL
from rheostat.services import kafka_broker
from rheostat.services.cleanup_process import members

LOW, HIGH, HALF_PERIOD_SECONDS = 40.0, 500.0, 60.0
ROUNDS = 40_000  # a row costs about a millisecond: the high load needs two nodes more than the low one
NODE = "--node cores=0.35,slots=2,memory_mb=1024 --nodes 1:3 --trigger 5"
POLICY = "--policy ds2(utilization_min=0.6) --period 5 --cooldown 15 --changes-per-hour 0"
HEAP_MB = 512
MAX_GROWTH = 0.01  # of the mean, per 10 minutes
MAX_ALIVE_GROWTH = 0.05  # of what lives in the heap, per 10 minutes: it depends on the moment
COLLECTIONS = 12  # full ones, at equal distances
MB = 2**20


@dataclass(frozen=True)
class Sample:
    """Memory and disk use at one time."""

    minutes: float
    driver: float
    controller: float
    journal: float
    nodes: int


def sample(run: StepController, began: float) -> Sample:
    assert run.process is not None
    turn = run.last()
    files = (run.folder / f"{JOURNAL}{suffix}" for suffix in ("", "-wal", "-shm"))
    return Sample(
        (time.monotonic() - began) / 60,
        sum(resident(pid) for pid in members(run.driver)),
        resident(run.process.pid),
        sum(file.stat().st_size for file in files if file.exists()) / MB,
        turn.outcome.configuration.nodes if turn else 0,
    )


def resident(pid: int) -> float:
    try:
        return float(psutil.Process(pid).memory_info().rss) / MB
    except psutil.Error:
        return 0.0


def growth(points: list[tuple[float, float]]) -> float:
    """Return the trend of the second half of (minutes, MB), as a fraction of its mean, per 10 minutes."""
    minutes, held = np.array(points[min(len(points) // 2, len(points) - 2) :]).T
    return float(np.polyfit(minutes, held, 1)[0] * 10 / held.mean())


def alive(log: Path) -> list[tuple[float, float]]:
    """Return what full collections left in the driver's heap: minutes, MB."""
    result = re.findall(r"^\[([\d.]+)s\].* Pause Full .* \d+M->(\d+)M\(", log.read_text(), re.MULTILINE)
    return [(float(seconds) / 60, float(left)) for seconds, left in result]


def hold(run: StepController, sender: Sender, minutes: float, every: float) -> list[Sample]:
    """Run under a load that goes up and down, and record what is held."""
    samples, began = list[Sample](), time.monotonic()
    print("  min   driver MB  controller MB  journal MB  nodes")
    while (passed := time.monotonic() - began) < 60 * minutes:
        sender.rate = HIGH if int(passed / HALF_PERIOD_SECONDS) % 2 else LOW
        if passed >= every * len(samples):
            assert run.process is not None and run.process.poll() is None, run.err
            samples.append(item := sample(run, began))
            output = (
                f"  {item.minutes:4.1f}  {item.driver:9.0f}  {item.controller:13.0f}  {item.journal:10.1f}"
            )
            print(f"{output}  {item.nodes:5}", flush=True)
        time.sleep(0.5)
    return samples


def plot(samples: list[Sample], out: Path) -> None:
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415 - after its backend is chosen

    figure, (memory, nodes) = plt.subplots(2, 1, sharex=True, figsize=(8, 5), height_ratios=(3, 1))
    minutes = [item.minutes for item in samples]
    for name in ("driver", "controller", "journal"):
        memory.plot(minutes, [getattr(item, name) for item in samples], label=name)
    memory.set(ylabel="MB", yscale="log")
    memory.legend()
    nodes.step(minutes, [item.nodes for item in samples], where="post", color="grey")
    nodes.set(xlabel="minutes", ylabel="nodes")
    figure.tight_layout()
    figure.savefig(out, dpi=110)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--every", type=float, default=30.0, help="seconds between two looks")
    parser.add_argument("--out", type=Path, default=Path("docs/images/soak.png"))
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rheostat-soak-") as folder:
        place, topic = Path(folder), f"soak-{uuid.uuid4().hex[:8]}"
        with kafka_broker.running(place / "broker") as broker:
            kafka_broker.create_topic(broker.servers, topic, PARTITIONS)
            sink, checkpoint = Sink(place / "sink", place / "checkpoint"), place / "checkpoint"
            jars = ",".join(map(str, kafka_broker.connector_jars()))
            heap = f"-Xms{HEAP_MB}m -XX:+AlwaysPreTouch -Xlog:gc:file={place}/gc.log:uptime"
            settings = {
                "spark.driver.memory": f"{HEAP_MB}m",
                "spark.driver.extraJavaOptions": heap,
                "spark.cleaner.periodicGC.interval": f"{60 * asked.minutes / COLLECTIONS:.0f}s",
            }
            write_private(place / "driver.conf", properties({**settings, "spark.jars": jars}))
            options = f"{POLICY} {NODE} --checkpoint {checkpoint} --conf-file {place}/driver.conf"
            arguments = (broker.servers, topic, str(place / "sink"), str(place), str(ROUNDS))
            run = StepController(place, *arguments, options=options)
            sender = Sender(broker.servers, topic, LOW)
            try:
                run.start().wait_for_turns(1)
                samples = hold(run, sender, asked.minutes, asked.every)
                changes = sum(turn.plan.changes for turn in run.turns())
                rows = sender.stop()
                eventually(lambda: sink.newest() == rows - 1, "the last row", 300)
                assert run.end(signal.SIGINT) == 130 and run.left() == [], run.left()
                sink.check(rows)
                living = alive(place / "gc.log")
            finally:
                run.clear()
    plot(samples, asked.out)
    grown = {
        name: growth([(item.minutes, getattr(item, name)) for item in samples])
        for name in ("driver", "controller")
    }
    journal = max(item.journal for item in samples)
    more = growth(living)
    good = all(part < MAX_GROWTH for part in grown.values()) and more < MAX_ALIVE_GROWTH
    good = good and journal <= MAX_BYTES / MB
    words = ", ".join(f"{name} {part:+.1%}" for name, part in grown.items())
    print(
        f"  {changes} changes, {rows:,} rows, none lost or doubled; per 10 minutes: {words} "
        f"(bound {MAX_GROWTH:.0%}), alive in the heap {more:+.1%} of {living[-1][1]:.0f} MB (bound "
        f"{MAX_ALIVE_GROWTH:.0%}); journal {journal:.1f} MB of {MAX_BYTES / MB:.0f}  "
        f"{'ok' if good else 'FAILED'}"
    )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
