"""Stops a driver in order: it may finish its batch, but a dead or hanging driver holds nothing up."""

import time
from collections.abc import Callable
from typing import Protocol

from rheostat.engines.spark.limits import LIMITS, Limits

STEP_SECONDS = 0.05


class Stoppable(Protocol):
    """What stopping needs of a driver."""

    @property
    def alive(self) -> bool:
        """Whether the process runs."""

    def begin_stop(self) -> bool:
        """Ask it to stop, without waiting for the answer; whether the request was sent."""

    def has_stopped(self, seconds: float) -> bool:
        """Wait up to `seconds` for the answer; whether it came, or the connection ended."""

    def is_silent(self, seconds: float) -> bool:
        """Whether it answers nothing at all for `seconds`."""

    def kill(self) -> None:
        """End whatever is left of it at once."""


def end_in_order(
    driver: Stoppable,
    limits: Limits = LIMITS,
    say: Callable[[str], None] = lambda _: None,
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> float:
    """Let the running batch end, then Spark, then the process; kill whatever does not end in time.

    Returns the time at which the batch had ended, by `now`.
    """
    ended = now()
    try:
        if not driver.begin_stop() or _batch_ends(driver, limits, say, now):
            ended = now()
            until = ended + limits.spark_seconds
            while driver.alive and now() < until:
                sleep(STEP_SECONDS)
    finally:
        driver.kill()
    return ended


def _batch_ends(
    driver: Stoppable, limits: Limits, say: Callable[[str], None], now: Callable[[], float]
) -> bool:
    """Wait for the running batch; False: the driver hangs, or takes longer than a batch may."""
    began = now()
    until, announced = began + limits.stop_seconds, False
    while not driver.has_stopped(min(limits.patience_seconds, max(0.0, until - now()))):
        if now() >= until or driver.is_silent(limits.silent_seconds):
            return False
        if not announced:
            say(f"waiting for the running batch to end, at most {until - now():.0f} s")
            announced = True
    return True
