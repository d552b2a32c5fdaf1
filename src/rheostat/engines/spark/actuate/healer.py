"""Brings back what was lost between two changes, and gives back what came: what runs is what was decided."""

from dataclasses import dataclass, field

from rheostat.engines.spark.actuate.actuator import Actuator
from rheostat.engines.spark.driver_process import DriverLostError
from rheostat.model.errors import RheostatError

BARE_SECONDS = 30.0  # a node without executors is looked at after so long
FIRST_BACKOFF_SECONDS = 2.0
LONGEST_BACKOFF_SECONDS = 60.0


@dataclass
class Healer:
    """Replaces nodes that ended by themselves, and those that the cluster gave up on."""

    actuator: Actuator
    _backoff: float = FIRST_BACKOFF_SECONDS
    _not_before: float = 0.0
    _bare: dict[str, float] = field(default_factory=dict)  # nodes without executors, since when
    _late: tuple[str, float] | None = None  # nodes whose executors are still to come, and since when
    _busy: bool = False

    def heal(self) -> bool:
        """Bring back what is missing, else try again later; whether anything changed."""
        if self._busy or self.actuator.provider.decides:
            return False
        self._busy = True
        try:
            if not self.actuator.provider.owned:  # not ours to replace
                return self._give_back()
            ended = self._end_dropped()
            return self._replace() or ended
        finally:
            self._busy = False

    def _give_back(self) -> bool:
        """Spark begins on all Workers of a cluster; some executors come when it has all it wants."""
        surplus = self.actuator.give_back()
        if surplus:
            self._note(f"{', '.join(surplus)} had an executor that nobody asked for: given back")
        return bool(surplus)

    def _replace(self) -> bool:
        actuator, began, there = self.actuator, self.actuator.clock.now(), self.actuator.names()
        missing = len(actuator.planned) - len(there)
        if missing <= 0:
            return self._have_come()
        if began < self._not_before:
            return False
        try:
            added = actuator.replace_lost()
        except DriverLostError:
            raise
        except RheostatError as error:
            names = actuator.names()
            if len(names) >= len(actuator.planned):
                self._late = ", ".join(name for name in names if name not in there), began
                self._note(f"{self._late[0]} came for what was lost; {error}, and are waited for")
                return True
            lacking = f"{missing} of {len(actuator.planned)} missing"
            self._note(f"{lacking}: {error}; tried again in {self._backoff:g} s")
            self._not_before = actuator.clock.now() + self._backoff
            self._backoff = min(LONGEST_BACKOFF_SECONDS, 2 * self._backoff)
            return True
        self._late = ", ".join(added), began
        self._have_come()
        return True

    def _have_come(self) -> bool:
        """See whether the last replacement has its executors by now."""
        if self._late is None or not self.actuator.whole:
            return False
        (names, began), self._late = self._late, None
        self._backoff = FIRST_BACKOFF_SECONDS
        took = self.actuator.clock.now() - began
        self._note(f"{names} replaced what was lost, with its executors after {took:.1f} s")
        return True

    def _end_dropped(self) -> bool:
        """A node that stays without executors may have been frozen so long that its Master gave it up."""
        actuator, now = self.actuator, self.actuator.clock.now()
        hosts, ended = set(actuator.monitor.nodes_of_executors().values()), False
        names = actuator.names()
        self._bare = {name: self._bare.get(name, now) for name in names if name not in hosts}
        for name in [name for name, since in self._bare.items() if now - since >= BARE_SECONDS]:
            if self._is_dropped(name):
                actuator.provider.release(name)
                self._note(f"node {name} was given up by the Master for {BARE_SECONDS:g} s: ended")
                ended = True
            else:
                actuator.request_executors()
                self._bare[name] = now
        return ended

    def _is_dropped(self, name: str) -> bool:
        try:
            return self.actuator.provider.abandoned(name)
        except OSError:  # the Master does not answer: nothing is known
            return False

    def _note(self, text: str) -> None:
        self.actuator.monitor.note(self.actuator.clock.now(), "node", text)
