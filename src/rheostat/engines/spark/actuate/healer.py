"""Keeps what is observed as it was planned: replaces what was lost, and releases what was not requested."""

from dataclasses import dataclass, field

from rheostat.engines.spark.actuate.actuator import Actuator
from rheostat.engines.spark.driver_process import DriverLostError
from rheostat.model.errors import RheostatError

BARE_SECONDS = 30.0  # a node that has been without executors for this long is checked
FIRST_BACKOFF_SECONDS = 2.0
LONGEST_BACKOFF_SECONDS = 60.0


@dataclass
class Healer:
    """Replaces nodes that ended by themselves, and those that the cluster has dropped."""

    actuator: Actuator
    _backoff: float = FIRST_BACKOFF_SECONDS
    _not_before: float = 0.0
    _bare: dict[str, float] = field(default_factory=dict)  # nodes without executors, and since when
    _late: tuple[str, float] | None = (
        None  # replacements whose executors have yet to register, and since when
    )
    _busy: bool = False

    def heal(self) -> bool:
        """Replace what is missing, or try again later; whether anything changed."""
        if self._busy or self.actuator.provider.decides:
            return False
        self._busy = True
        try:
            if not self.actuator.provider.owned:
                return self._release_surplus()
            ended = self._end_dropped()
            return self._replace() or ended
        finally:
            self._busy = False

    def _release_surplus(self) -> bool:
        """Spark starts on all Workers of a cluster: some executors register after all that was requested."""
        surplus = self.actuator.release_surplus()
        if surplus:
            self._note(f"{', '.join(surplus)} had an executor that was not requested: released")
        return bool(surplus)

    def _replace(self) -> bool:
        actuator, truths = self.actuator, self.actuator.truths
        began, before = actuator.clock.now(), truths.names
        missing = len(truths.missing)
        if not missing:
            return self._report_replacement()
        if began < self._not_before:
            return False
        try:
            added = actuator.replace_lost()
        except DriverLostError:
            raise
        except RheostatError as error:
            if not truths.missing:
                new = ", ".join(name for name in truths.names if name not in before)
                self._late = new, began
                self._note(f"{new} started to replace what was lost; {error}; still waiting")
                return True
            self._retry_later(f"{missing} of {truths.planned.nodes} missing: {error}")
            return True
        self._late = ", ".join(added), began
        self._report_replacement()
        return True

    def _retry_later(self, why: str) -> None:
        self._note(f"{why}; retrying in {self._backoff:g} s")
        self._not_before = self.actuator.clock.now() + self._backoff
        self._backoff = min(LONGEST_BACKOFF_SECONDS, 2 * self._backoff)

    def _report_replacement(self) -> bool:
        """Note it once the last replacement has its executors."""
        if self._late is None or not self.actuator.truths.complete:
            return False
        (names, began), self._late = self._late, None
        self._backoff = FIRST_BACKOFF_SECONDS
        took = self.actuator.clock.now() - began
        self._note(f"{names} replaced what was lost, with its executors after {took:.1f} s")
        return True

    def _end_dropped(self) -> bool:
        """A node that stays without executors may have been frozen for so long that its Master dropped it."""
        actuator, now = self.actuator, self.actuator.clock.now()
        hosts, ended = set(actuator.monitor.nodes_of_executors().values()), False
        names = actuator.truths.names
        self._bare = {name: self._bare.get(name, now) for name in names if name not in hosts}
        for name in [name for name, since in self._bare.items() if now - since >= BARE_SECONDS]:
            if self._is_dropped(name):
                actuator.provider.release(name)
                self._note(
                    f"the Master dropped node {name}, which had no executors for {BARE_SECONDS:g} s: ended"
                )
                ended = True
            else:
                actuator.request_planned()
                self._bare[name] = now
        return ended

    def _is_dropped(self, name: str) -> bool:
        try:
            return self.actuator.provider.abandoned(name)
        except OSError:  # the Master does not answer, so nothing is known
            return False

    def _note(self, text: str) -> None:
        self.actuator.monitor.note(self.actuator.clock.now(), "node", text)
