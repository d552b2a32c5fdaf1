"""The compute model where operators share CPU: `python benchmarks/bench_shared_cpu.py [--only N]`.

The ten allocations of bench_compute_model, but operators burn CPU, on a node whose quota is one core. That
quota is the limit, not the machine, which also runs the driver, the broker and the sender. One application
runs all the time. It shows what `rheostat allocate --journal` sees: CPU per row, and what the node does
beside its operators. The first prediction is from a load that is served, each other one from the allocation
before it, as compilers go on making rows cheaper. Instances change live; in between the queues drain.
"""

import argparse
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
from bench_compute_model import ALLOCATIONS, NAME, NEEDED, Units, allocations, measured

from rheostat.allocate.compute_model import ComputeModel, Floats, throughput
from rheostat.allocate.from_windows import from_windows
from rheostat.allocate.measured import MeasuredTopology
from rheostat.apps.shipped import find_script
from rheostat.engines.spark.observe.batches import Batch
from rheostat.model.configuration import Bounds, NodeKind
from rheostat.model.decision import Plan, Status
from rheostat.model.errors import UserError
from rheostat.model.observation import Observation
from rheostat.model.topology_file import find_topology
from rheostat.policies.discovery import Discovery
from rheostat.run.composition import Running, start_run
from rheostat.run.order import Order
from rheostat.services import kafka_broker
from rheostat.trials.feed import Feed, feeding

WITHIN = 0.15
CORES = 1.0
TRIGGER_SECONDS, WINDOW_SECONDS = 10.0, 10.0
WARM_UP_SECONDS, WARM_UP_LOAD = 50.0, 60.0  # JVMs compile, and nothing piles up
SERVED_SECONDS, SERVED_LOAD = 40.0, 100.0  # what one instance each can serve: here CPU per row is measured
OVERLOAD = 1.35  # of the load that would take all of the CPU
SETTLING_SECONDS, MEASURED_SECONDS = 12.0, 30.0
IDLE, IDLE_SECONDS = 0.3, 3.0  # cores that the node uses when its queues are empty, and for how long
MAX_SECONDS = 240.0
SMALL_BUFFERS = {  # a congested query reads ahead what its buffers hold, and its batch ends when that is done
    "spark.shuffle.streaming.networkBufferSize": "2048",
    "spark.shuffle.streaming.readerMaxMemory": "8192",
    "spark.shuffle.streaming.writerMaxMemory": "8192",
}


class Bench:
    """A running application, its sender, and the batches that ended."""

    def __init__(self, run: Running, feed: Feed) -> None:
        self.run, self.engine, self.feed = run, run.engine, feed
        self.batches: dict[tuple[str, int], Batch] = {}

    def send(self, rows_per_second: float) -> None:
        """Send so many rows/s from now on; 0: none."""
        self.feed.end()
        if rows_per_second:
            self.feed.curve = f"constant:rate={rows_per_second:g}:duration=1h"
            self.feed.begin()

    def wait(self, seconds: float) -> None:
        until = self.engine.now() + seconds
        while self.engine.now() < until:
            self.run.clock.sleep(0.5)
            self.batches |= {(batch.query, batch.number): batch for batch in self.engine.monitor.recent}
        self.feed.check()

    def windows(self, seconds: float) -> list[Observation]:
        self.engine.observe()
        result = []
        for _ in range(round(seconds / WINDOW_SECONDS)):
            self.wait(WINDOW_SECONDS)
            result.append(self.engine.observe())
        return result

    def give(self, added: Units) -> None:
        """Change the instances; each query does so with its next batch."""
        now = self.engine.configuration
        target = replace(now, parallelism={name: 1 + added.get(name, 0) for name in now.parallelism})
        outcome = self.engine.apply(Plan(1, self.engine.now(), now, target, "the benchmark wants it"))
        if outcome.status is Status.FAILED:
            raise RuntimeError(outcome.reason)

    def drain(self) -> None:
        """Wait until the queues are empty: then the node has nothing to do."""
        until, meter = self.engine.now() + MAX_SECONDS, self.engine.meter()
        meter.read(self.engine.now())
        while True:
            self.wait(IDLE_SECONDS)
            used = [use.cores for use in meter.read(self.engine.now()).values()]
            if all(cores is not None and cores < IDLE for cores in used):
                return
            if self.engine.now() > until:
                raise RuntimeError(f"the node is still busy after {MAX_SECONDS:g} s: {used} cores")

    def rates(self, leaves: tuple[str, ...]) -> tuple[dict[str, float], list[Observation]]:
        """Rows/s out of each leaf, over its batches that begin from now on; and the windows meanwhile."""
        began = self.engine.now()
        windows = self.windows(MEASURED_SECONDS)
        while True:
            ended = [batch for batch in self.batches.values() if batch.started >= began]
            own = {leaf: [batch for batch in ended if leaf in batch.rows] for leaf in leaves}
            if all(len(batches) >= 2 for batches in own.values()):
                return {leaf: _rate(batches, leaf) for leaf, batches in own.items()}, windows
            if self.engine.now() > began + MAX_SECONDS:
                raise RuntimeError(f"batches: { {leaf: len(batches) for leaf, batches in own.items()} }")
            self.wait(WINDOW_SECONDS / 2)
            windows.append(self.engine.observe())


def _rate(batches: list[Batch], leaf: str) -> float:
    seconds = max(b.finished for b in batches) - min(b.started for b in batches)
    return sum(batch.rows[leaf] for batch in batches) / seconds


def under(topology: MeasuredTopology, load: float) -> MeasuredTopology:
    """The topology with this load instead of that under which it was measured."""
    sources = sum(item.max_rate for item in topology.components if item.source)
    return replace(
        topology,
        components=tuple(
            replace(item, max_rate=item.max_rate * load / sources) if item.source else item
            for item in topology.components
        ),
    )


def filling(topology: MeasuredTopology) -> float:
    """The load that takes all of the CPU, if every row is served."""
    model = ComputeModel(under(replace(topology, cores=None), 1.0))
    per_row: Floats = model.rates(model.nothing()).processed * model.cpu_seconds
    return (topology.cores or 0.0) / float(per_row.sum())


def predicted(topology: MeasuredTopology, added: Units) -> dict[str, float]:
    """Rows/s out of each leaf, by the model."""
    model = ComputeModel(topology)
    rates = model.rates(np.array([added.get(name, 0) for name in model.names]))
    return {model.names[i]: float(rates.output[i]) for i in range(model.size) if model.leaf[i]}


def used(windows: list[Observation]) -> float:
    """The cores that the nodes used: where it is far below the quota, others used the machine."""
    seconds = sum(window.seconds for window in windows)
    return sum((n.cpu or 0.0) * n.cores * w.seconds for w in windows for n in w.nodes) / seconds


def order(topic: str, servers: str, folder: Path, slots: int) -> Order:
    return Order(
        name=NAME,
        script=find_script(NAME),
        policy=Discovery(minHealth=0.0),
        policy_text="fixed",
        folder=folder / "run",
        arguments=("--topic", topic),
        mode="realtime",
        kinds=(NodeKind(cores=CORES, slots=slots, memory_mb=2048.0),),
        bounds=Bounds(1, 1),
        trigger_seconds=TRIGGER_SECONDS,
        kafka=servers,
        settings=SMALL_BUFFERS,
    )


def measure(bench: Bench) -> MeasuredTopology:
    """Let the JVMs compile, then measure the topology while it serves everything."""
    bench.send(WARM_UP_LOAD)
    bench.wait(WARM_UP_SECONDS)
    bench.send(SERVED_LOAD)
    bench.wait(WINDOW_SECONDS)
    windows = bench.windows(SERVED_SECONDS)
    while True:
        try:
            return shown(bench, windows)
        except UserError:  # on a busy machine it takes longer until every query has ended a batch
            if len(windows) > MAX_SECONDS / WINDOW_SECONDS:
                raise
            windows += bench.windows(WINDOW_SECONDS)


def shown(bench: Bench, windows: list[Observation]) -> MeasuredTopology:
    """The topology that these windows show, one instance each; an instance can use a core."""
    engine = bench.engine
    topology = from_windows(NAME, windows, engine.configuration.parallelism, engine.model)
    return replace(
        topology,
        components=tuple(
            item if item.source else replace(item, units=1, max_rate=1 / item.cpu_seconds)
            for item in topology.components
        ),
    )


def describe(topology: MeasuredTopology) -> str:
    """What was measured, in words."""
    costs = ", ".join(f"{item.name}: {1000 * item.cpu_seconds:.2f}" for item in topology.components)
    cores = topology.cores or 0.0
    return (
        f"  CPU per row in ms {costs}\n"
        f"  of {CORES:g} core the node itself takes {CORES - cores:.2f}; "
        f"{cores:.2f} are left to operators, which is {filling(topology):.0f} rows/s"
    )


def row(
    words: str, alone: float, model: Mapping[str, float], spark: Mapping[str, float], cores: float
) -> float:
    """Print a line of the table; return the error."""
    error = sum(spark.values()) / sum(model.values()) - 1
    off = {leaf: spark[leaf] / model[leaf] - 1 for leaf in model}
    worst = max(off, key=lambda leaf: abs(off[leaf]))
    rates = (alone, sum(model.values()), sum(spark.values()))
    numbers = " ".join(f"{rate:8,.0f}/s" for rate in rates)
    print(f"  {words} {numbers} {error:+7.1%} {cores:6.2f}   {worst}: {off[worst]:+.0%}", flush=True)
    return error


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    some = range(1, ALLOCATIONS + 1)
    parser.add_argument("--only", type=int, default=ALLOCATIONS, choices=some, help="so many allocations")
    topology = find_topology(NAME)
    chosen = allocations(measured(topology))[: parser.parse_args().only]
    slots = len(topology.names) + max(sum(added.values()) for added in chosen) + len(topology.streams) + 2
    close = 0
    with (
        tempfile.TemporaryDirectory(prefix="rheostat-bench-") as folder,
        kafka_broker.running(Path(folder)) as broker,
        feeding(broker.servers, "constant", seed=0, partitions=1) as feed,
        start_run(order(feed.topic, broker.servers, Path(folder), slots)) as run,
    ):
        bench = Bench(run, feed)
        found = measure(bench)
        print(describe(found), flush=True)
        heads = f"{'more instances':34} {'load':>10} {'P4 alone':>10} {'predicted':>10} {'on Spark':>10}"
        print(f"  {heads} {'':7} {'cores':>6}   worst leaf")
        for added in chosen:
            bench.send(0)
            bench.give(added)
            bench.drain()
            load = OVERLOAD * filling(found)
            bench.send(load)
            bench.wait(SETTLING_SECONDS)
            loaded = under(found, load)
            alone = throughput(replace(loaded, cores=None), added)
            words = ", ".join(f"{name} +{count}" for name, count in added.items()) or "none"
            words = f"{words:34} {load:8,.0f}/s"
            rates, windows = bench.rates(topology.sinks)
            error = row(words, alone, predicted(loaded, added), rates, used(windows))
            close += abs(error) <= WITHIN
            with suppress(UserError):  # what is not measured stays as it was
                found = shown(bench, windows)
        print(f"  at the end\n{describe(found)}")
    good = close >= NEEDED * len(chosen) / ALLOCATIONS
    verdict = "ok" if good else "FAILED"
    print(f"  {close} of {len(chosen)} within {WITHIN:.0%} (bound {NEEDED} of {ALLOCATIONS})  {verdict}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
