"""Restarts a plain script on rewritten state: stopped between two batches, rewritten, started again."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rheostat.engines.spark.actuate.actuator import Actuator
from rheostat.engines.spark.actuate.healer import Healer
from rheostat.engines.spark.actuate.waiting import wait_until
from rheostat.engines.spark.driver_process import DriverProcess
from rheostat.engines.spark.protocol import Describe, Description, QueryStatus
from rheostat.engines.spark.spec import CheckpointRewrite, Spec
from rheostat.model.errors import RheostatError
from rheostat.model.rewrite import Rewrite

RESTART_SECONDS = 600.0  # at least, for the rewrite and for the script to start its queries
PAUSES = 3.0  # or so many times the pause that was predicted


@dataclass
class ScriptRestart:
    """One restart; nodes stay, and one that is lost meanwhile is replaced."""

    actuator: Actuator
    healer: Healer
    start: Callable[[Spec], None]  # a driver process like this, with all who ask it connected

    def run(self, driver: DriverProcess, rewrite: Rewrite, queries: Sequence[QueryStatus]) -> Description:
        """Rewrite the state of these queries; returns what the new driver runs."""
        actuator = self.actuator
        actuator.steps, actuator.pause_seconds, actuator.touched = [], 0.0, True
        wanted = tuple(
            CheckpointRewrite(query.checkpoint, rewrite.after)
            for query in queries
            if query.checkpoint is not None and {s.operator for s in query.stages} & {*rewrite.operators}
        )
        actuator.before_step("stop")
        since_batch = driver.stop()
        paused_at = actuator.clock.now() - since_batch
        actuator.steps.append("script stopped")
        actuator.before_step("rewrite")
        self.start(replace(driver.spec, rewrites=wanted))
        actuator.request_planned()
        actuator.before_step("restart")
        self._wait_until_it_runs(max(RESTART_SECONDS, PAUSES * rewrite.pause_seconds))
        actuator.pause_seconds = actuator.clock.now() - paused_at
        described = actuator.channel.ask(Describe())
        self._tell(described)
        return described

    def _wait_until_it_runs(self, seconds: float) -> None:
        monitor = self.actuator.monitor

        def is_running() -> bool:
            self.healer.heal()
            polled = monitor.queries.values()  # where no rows come, a trigger is over before anyone looks
            return any(query.busy or query.batches for query in polled)

        if not wait_until(monitor, self.actuator.clock, is_running, seconds):
            raise RheostatError(f"the script ran no query within {seconds:g} s after its restart")

    def _tell(self, described: Description) -> None:
        rewritten = sum(each.seconds for each in described.rewrites)
        self.actuator.steps += [
            f"state rewritten in {rewritten:.1f} s",
            f"script started again, paused for {self.actuator.pause_seconds:.1f} s",
        ]
