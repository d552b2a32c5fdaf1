"""A stateful operator changes its parallelism: how long the stream pauses, by the number of keys."""

import statistics
import sys

from spark_runs import plan, running, wait_for_batches

from rheostat.model.configuration import NodeKind

KEYS = (1_000, 100_000, 1_000_000)
MAX_SECONDS = 20.0  # for the last
KIND = NodeKind(cores=2.0, slots=4, memory_mb=2048.0)


def pauses(keys: int) -> list[float]:
    result = []
    with running("keys", str(keys), kind=KIND) as engine:
        while (engine.monitor.recent[-1].state_rows or 0 if engine.monitor.recent else 0) < keys:
            wait_for_batches(engine, 1)
        wait_for_batches(engine, 3)
        for count in (2, 4, 2):
            outcome = engine.apply(plan(engine, count=count))
            if outcome.pause_seconds == 0:
                raise RuntimeError(outcome.reason)
            result.append(outcome.pause_seconds)
            wait_for_batches(engine, 3)
            if engine.monitor.recent[-1].state_rows != keys:
                raise RuntimeError(f"{engine.monitor.recent[-1].state_rows} keys of {keys} are left")
    return result


def main() -> int:
    print("       keys   pauses (s): 1 -> 2 -> 4 -> 2 instances   median")
    median = 0.0
    for keys in KEYS:
        result = pauses(keys)
        median = statistics.median(result)
        print(
            f"  {keys:9,}   {', '.join(f'{pause:5.1f}' for pause in result):38}   {median:5.1f}", flush=True
        )
    good = median <= MAX_SECONDS
    print(f"  {KEYS[-1]:,} keys: {median:.1f} s (bound {MAX_SECONDS:g})  {'ok' if good else 'FAILED'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
