"""A stateless operator changes its parallelism under load: what is lost, what restarts, when it takes effect.

Storm's rebalance stopped a topology for 5 to 8 s (paper P2).
"""

import statistics
import sys

from spark_runs import plan, running, wait_for_batches

from rheostat.engines.spark.engine import SparkEngine
from rheostat.engines.spark.observe.batches import Batch
from rheostat.model.configuration import NodeKind

RATE, REPETITIONS = 500, 6
KIND = NodeKind(cores=1.0, slots=4, memory_mb=1024.0)
MIN_THROUGHPUT = 0.95  # of the batches before; a row more or less per second is noise


def rate(engine: SparkEngine, batch: Batch) -> float:
    """Return the rows/s done between the end of the previous batch and of this one."""
    before = next(other for other in engine.monitor.recent if other.number == batch.number - 1)
    return batch.input_rows / (batch.finished - before.finished)


def main() -> int:
    ratios, late, restarts = [], 0, 0
    print("  work     effective in  throughput of the next batch")
    with running("live", str(RATE), kind=KIND) as engine:
        wait_for_batches(engine, 15)
        for count in [2, 4] * (REPETITIONS // 2):
            wait_for_batches(engine, 6)
            usual = statistics.median(rate(engine, batch) for batch in list(engine.monitor.recent)[-5:])
            run, asked = engine.monitor.run_id, engine.now()
            running_now = engine.monitor.recent[-1].number + 1  # or waits for its trigger
            engine.apply(plan(engine, work=count))
            first = next(
                b for b in engine.monitor.recent if b.stages[1].tasks == count and b.started >= asked - 2
            )
            wait_for_batches(engine, 1)
            following = next(b for b in engine.monitor.recent if b.number == first.number)
            ratios.append(rate(engine, following) / usual)
            late += first.number > running_now + 1
            restarts += engine.monitor.run_id != run
            print(f"  -> {count}     batch +{first.number - running_now}     x{ratios[-1]:.2f}", flush=True)
        rows = engine.monitor.rows
        lost = rows["in"] - rows["out"]
    ratio = statistics.median(ratios)
    good = lost == 0 and restarts == 0 and late == 0 and ratio >= MIN_THROUGHPUT
    print(
        f"  rows lost {lost} of {rows['in']:,}, restarts {restarts}, later than the next batch {late}, "
        f"throughput x{ratio:.2f} (bound x{MIN_THROUGHPUT:g})  {'ok' if good else 'FAILED'}"
    )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
