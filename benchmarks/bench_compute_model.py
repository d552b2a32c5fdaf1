"""P4's compute model against Spark: `python -m benchmarks.bench_compute_model [--batches 2]`.

Ten allocations of topology10, as P4's algorithms choose them for 0 to 5 more units, each predicted from the
costs in its file and then run in Real-Time Mode, ten queries with Kafka between them. Operators wait for as
long as a row costs, as for a remote service: two cores cannot compute for fifteen instances at once.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from rheostat.allocate.algorithms import ALGORITHMS
from rheostat.allocate.compute_model import throughput
from rheostat.allocate.measured import Component, MeasuredTopology
from rheostat.apps.shipped import find_script
from rheostat.engines.spark.engine import SparkEngine
from rheostat.engines.spark.observe.batches import Batch
from rheostat.model.configuration import Bounds, NodeKind
from rheostat.model.topology import Topology
from rheostat.model.topology_file import find_topology
from rheostat.policies.discovery import Discovery
from rheostat.run.composition import start_run
from rheostat.run.order import Order
from rheostat.services import kafka_broker
from rheostat.trials.feed import feeding

NAME, ALLOCATIONS, NEEDED, WITHIN = "topology10", 10, 8, 0.10
TRIGGER_SECONDS = 15.0  # a query pauses between two batches, which the model does not know
WARM_UP_SECONDS = 45.0  # under a tenth of the load: ten queries' JVM compiles, and nothing piles up meanwhile
SETTLING_SECONDS = 20.0  # under all of it
MAX_SECONDS = 900.0  # a congested query reads ahead, and its batch ends when all of that is done
SLOWER = (
    8  # rows take this many times their cost, and the load is divided by it: so two cores can run ten queries
)
Units = dict[str, int]


def measured(topology: Topology) -> MeasuredTopology:
    """Return the file's costs as the rates of the compute model."""
    return MeasuredTopology(
        topology.name,
        tuple(
            Component(
                operator.name,
                max_rate=(operator.load or 0.0)
                if operator.name in topology.sources
                else 1 / operator.cost_seconds,
                source=operator.name in topology.sources,
                children={s.downstream: s.share for s in topology.streams if s.upstream == operator.name},
            )
            for operator in topology.operators
        ),
    )


def allocations(topology: MeasuredTopology) -> list[Units]:
    """Return the first ten different allocations for a growing budget, under the same load."""
    result: list[Units] = [{}]
    sources = {item.name for item in topology.components if item.source}
    for units in range(1, 30):
        for algorithm in ("stela", "predictive", "optimal"):
            chosen = dict(ALGORITHMS[algorithm](topology, units).units)
            if chosen not in result and not sources & chosen.keys():
                result.append(chosen)
            if len(result) == ALLOCATIONS:
                return result
    raise AssertionError("the algorithms choose fewer than ten allocations")


def served(topology: Topology, added: Units, servers: str, batches: int) -> float:
    """Return the rows/s out of the leaves on Spark, with these additional instances."""
    parallelism = {name: 1 + added.get(name, 0) for name in topology.names}
    slots = sum(parallelism.values()) + len(topology.streams) + 2
    load = sum(topology.operator(name).load or 0.0 for name in topology.sources) / SLOWER
    curve = f"step:low={load / 10:g}:high={load:g}:start={WARM_UP_SECONDS:g}:end=1h:duration=1h"
    with (
        tempfile.TemporaryDirectory(prefix="rheostat-bench-") as folder,
        feeding(servers, curve, seed=0, partitions=1) as sent,
    ):
        order = Order(
            name=NAME,
            script=find_script(NAME),
            policy=Discovery(minHealth=0.0, parallelism=parallelism),
            policy_text="fixed",
            folder=Path(folder) / "run",
            arguments=("--topic", sent.topic, "--wait", str(SLOWER)),
            mode="realtime",
            kinds=(NodeKind(cores=2.0, slots=slots, memory_mb=2048.0),),
            bounds=Bounds(1, 1),
            trigger_seconds=TRIGGER_SECONDS,
            kafka=servers,
        )
        with start_run(order) as run:
            sent.begin()
            run.clock.sleep(WARM_UP_SECONDS + SETTLING_SECONDS)
            return sum(leaf_rates(run.engine, topology, batches).values())


def leaf_rates(engine: SparkEngine, topology: Topology, batches: int) -> dict[str, float]:
    """Return the rows/s out of each leaf, over its next batches."""
    observed: dict[str, dict[int, Batch]] = {leaf: {} for leaf in topology.sinks}
    began = engine.now()
    while any(len(own) < batches for own in observed.values()):
        engine.poll()
        for leaf, own in observed.items():
            own |= {
                batch.number: batch
                for batch in engine.monitor.recent
                if leaf in batch.rows and batch.started >= began
            }
        if engine.now() > began + MAX_SECONDS:
            counts = {leaf: len(own) for leaf, own in observed.items()}
            raise RuntimeError(f"batches that ended in {MAX_SECONDS:g} s: {counts}")
        engine.clock.sleep(0.5)
    return {leaf: _rate(list(own.values()), leaf) for leaf, own in observed.items()}


def _rate(batches: list[Batch], leaf: str) -> float:
    seconds = max(b.finished for b in batches) - min(b.started for b in batches)
    return sum(batch.rows[leaf] for batch in batches) / seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--batches",
        type=int,
        default=2,
        choices=range(1, 100),
        metavar="N",
        help="of each leaf that are measured",
    )
    some = range(1, ALLOCATIONS + 1)
    parser.add_argument("--first", type=int, default=1, choices=some, help="to go on in another sitting")
    parser.add_argument("--only", type=int, default=ALLOCATIONS, choices=some, help="so many allocations")
    asked = parser.parse_args()
    topology = find_topology(NAME)
    model, close = measured(topology), 0
    print(f"  {'more instances':34} {'predicted':>10} {'on Spark':>10}")
    with (
        tempfile.TemporaryDirectory(prefix="rheostat-broker-") as folder,
        kafka_broker.running(Path(folder)) as broker,
    ):
        chosen = allocations(model)[asked.first - 1 :][: asked.only]
        for added in chosen:
            predicted = throughput(model, added) / SLOWER
            result = served(topology, added, broker.servers, asked.batches)
            error = result / predicted - 1
            close += abs(error) <= WITHIN
            words = ", ".join(f"{name} +{count}" for name, count in added.items()) or "none"
            print(f"  {words:34} {predicted:8,.0f}/s {result:8,.0f}/s {error:+7.1%}", flush=True)
    good = close >= NEEDED * len(chosen) / ALLOCATIONS
    verdict = "ok" if good else "FAILED"
    print(f"  {close} of {len(chosen)} within {WITHIN:.0%} (bound {NEEDED} of {ALLOCATIONS})  {verdict}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
