"""Waits for what a change needs, with a limit, and watches the application meanwhile."""

from collections.abc import Callable

from rheostat.control.ports import Clock
from rheostat.engines.spark.observe.monitor import Monitor

POLL_SECONDS = 0.2
BATCH_SECONDS = 30.0


def wait_until(monitor: Monitor, clock: Clock, holds: Callable[[], bool], seconds: float) -> bool:
    """Wait until a condition holds; False: it did not within `seconds`."""
    until = clock.now() + seconds
    while True:
        monitor.poll(clock.now())
        if holds():
            return True
        if clock.now() >= until:
            return False
        clock.sleep(POLL_SECONDS)


def wait_for_batch(monitor: Monitor, clock: Clock, queries: set[str], realtime: bool) -> str:
    """Wait until no batch of these queries runs in the old size, so that its slots are free; returns a step.

    A micro-batch that ends is followed by one that is planned anew; in Real-Time Mode we see that a batch was
    planned anew only when it ends.
    """
    began = clock.now()
    effective: dict[str, str] = {}

    def all_are_effective() -> bool:
        for batch in monitor.recent:
            at = batch.started if realtime else batch.finished
            if at >= began and batch.query in queries:
                after = f"{'in' if realtime else 'after'} batch {batch.number}"
                effective.setdefault(batch.query, "at once, as there were no rows" if batch.idle else after)
        return len(effective) == len(queries)

    limit = max([BATCH_SECONDS, *(3 * batch.seconds for batch in monitor.recent)])
    if wait_until(monitor, clock, all_are_effective, limit):
        return f"effective {' and '.join(dict.fromkeys(effective.values()))}"
    late = " and ".join(sorted(queries - effective.keys()))
    return f"no batch {f'of {late} ' if late else ''}ended within {limit:.0f} s after the change"
