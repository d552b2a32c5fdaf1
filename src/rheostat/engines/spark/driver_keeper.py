"""Keeps the application's driver process running: when it dies, another one is started."""

import re
from collections.abc import Callable

from rheostat.control.ports import Clock
from rheostat.engines.spark.driver_process import DriverLostError, DriverProcess, EndedError
from rheostat.engines.spark.protocol import Describe, Description
from rheostat.engines.spark.spec import Spec
from rheostat.model.errors import RheostatError, UserError

FIRST_QUERY_SECONDS = 600.0  # for a script to start its first query: it may prepare tables before
PLAN_SECONDS = 10.0  # for the first batches to be planned: without rows they never are
ATTEMPTS = 5
FIRST_BACKOFF_SECONDS = 1.0
LONGEST_BACKOFF_SECONDS = 60.0
HEALTHY_SECONDS = 60.0  # a driver that ran this long resets the back-off
SAME_FAILURES = 5  # in a row without a batch between: then the application itself is at fault
ENDING_SECONDS = 10.0
LOOK_SECONDS = 0.1
_NUMBERS = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d+")  # of runs, batches and tasks


class DriverKeeper:
    """The driver process that runs now, and how to get another one."""

    def __init__(
        self,
        driver: DriverProcess,
        start: Callable[[Spec], DriverProcess],
        clock: Clock,
        pause: Callable[[float], None],
    ) -> None:
        self.driver = driver
        self.reviving = False
        self.queries_since: float | None = None  # when a script was first seen to run queries
        self._start, self._clock, self._pause = start, clock, pause
        self._backoff, self._started_at = FIRST_BACKOFF_SECONDS, clock.now()
        self._failures: list[str] = []  # in a row that are alike, without a batch between

    def describe(self) -> Description:
        """Wait until the driver can say what it runs: a plain script may take its time to start a query."""
        unplanned = 0
        for _ in range(int(FIRST_QUERY_SECONDS / LOOK_SECONDS)):
            try:
                described = self.driver.ask(Describe())
            except DriverLostError:
                raise self.why_it_ended() from None
            if described.queries and self.queries_since is None:
                self.queries_since = self._clock.now()
            if described.steps is not None or (
                described.queries and all(q.stages for q in described.queries)
            ):
                return described
            unplanned += bool(described.queries)
            if unplanned > PLAN_SECONDS / LOOK_SECONDS:
                return described
            self._pause(LOOK_SECONDS)
        raise UserError(
            f"the script started no streaming query within {FIRST_QUERY_SECONDS:g} s: "
            "it must call writeStream...start()"
        )

    def start(self, spec: Spec) -> DriverProcess:
        """Start a driver in place of one that ended; if it dies, the next does not try its rewrites."""
        self.driver.spec = spec.without_rewrites
        self._started_at = self._clock.now()
        self.driver = self._start(spec)
        return self.driver

    def revive(
        self, why: str, restart: Callable[[Spec], None], note: Callable[[str], None], *, progressed: bool
    ) -> None:
        """Replace a driver that died by `restart`, after a longer wait each time.

        `progressed`: whether a batch ended since the last time.
        """
        spec, failure = self.driver.spec.without_rewrites, self.why_it_ended()
        self.driver.kill()  # it may hang
        if isinstance(failure, UserError | EndedError):
            raise failure
        self._count(str(failure), progressed)
        if self._clock.now() - self._started_at > HEALTHY_SECONDS:
            self._backoff = FIRST_BACKOFF_SECONDS
        self.reviving = True
        try:
            for _ in range(ATTEMPTS):
                note(f"{why} ({failure}); restarting in {self._backoff:g} s")
                self._pause(self._backoff)
                self._backoff = min(LONGEST_BACKOFF_SECONDS, 2 * self._backoff)
                try:
                    restart(spec)
                    return
                except UserError:
                    raise
                except RheostatError as error:
                    failure = error
                    self.driver.kill()  # it may have started and not got far
        finally:
            self.reviving = False
        raise RheostatError(f"the driver failed to restart: {failure}")

    def _count(self, failure: str, progressed: bool) -> None:
        """Give up on an application that fails in the same way again and again."""
        words = _NUMBERS.sub("#", failure)
        before = [] if progressed else [past for past in self._failures if past == words]
        self._failures = [*before, words]
        if len(self._failures) >= SAME_FAILURES:
            raise RheostatError(
                f"{failure} (it failed {SAME_FAILURES} times in a row, without a batch between)"
            )

    def why_it_ended(self) -> RheostatError:
        """Wait for a driver that no longer answers to end, or to leave its reason; why it ended."""
        for _ in range(int(ENDING_SECONDS / LOOK_SECONDS)):
            if not self.driver.alive or self.driver.has_left_reason:
                break
            self._pause(LOOK_SECONDS)
        return self.driver.failure()
