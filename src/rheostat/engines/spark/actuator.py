"""Carries out a plan in the order that loses nothing, checks every step, and goes back when one fails.

Out: nodes, then executors registered, then parallelism. In: parallelism, a batch boundary, then executors,
then nodes. A plan that does both does the first half of each before the second.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rheostat.control.ports import Clock
from rheostat.engines.spark.batches import Batch
from rheostat.engines.spark.machines import Machines
from rheostat.engines.spark.monitor import Monitor
from rheostat.model.configuration import Configuration
from rheostat.model.decision import Plan
from rheostat.model.errors import RheostatError, UserError
from rheostat.model.topology import Topology

EXECUTOR_SECONDS = 60.0
LEAVING_SECONDS = 60.0
BATCH_SECONDS = 30.0
RESCALE_SECONDS = 600.0
POLL_SECONDS = 0.2


@dataclass
class Actuator:
    """Changes a running application; everything it waits for, it waits for with a limit."""

    monitor: Monitor
    machines: Machines
    clock: Clock
    topology: Topology
    realtime: bool
    executor_seconds: float = EXECUTOR_SECONDS
    steps: list[str] = field(default_factory=list)  # what was done, in words
    pause_seconds: float = 0.0
    parallelism: Mapping[str, int] = field(default_factory=dict)  # what runs, however far a plan got

    def carry_out(self, plan: Plan) -> None:
        """Bring the application to the plan's target, or raise RheostatError with everything as it was."""
        self.steps, self.pause_seconds = [], 0.0
        before, target = plan.current, plan.target
        self.parallelism = before.parallelism
        coming, leaving = self._coming(plan), self._leaving(plan)
        nodes = before.nodes + coming  # the most that there are at any time
        self._check_state(before, target)
        added = self._add_nodes(coming)
        try:
            if coming or target.executors > before.executors:
                self._add_executors(nodes, added)
                self.settle(added)
            self._check_slots(target)
            changed = self._set_parallelism(before.parallelism, target.parallelism)
        except RheostatError:
            self._take_back(added, before)
            raise
        self.parallelism = target.parallelism
        if changed:
            self._wait_for_batch()
        if leaving:
            self._remove(leaving, nodes - len(leaving))

    def prepare(self, nodes: int) -> None:
        """Have so many nodes with their executors before anything runs on them, and no more."""
        self.monitor.poll(self.clock.now())
        self._add_nodes(max(0, nodes - len(self.machines.names())))
        self._add_executors(nodes, self.machines.names())
        if surplus := self.machines.names()[nodes:]:
            self._remove(surplus, nodes)

    def settle(self, nodes: tuple[str, ...]) -> None:
        """These nodes are up: from now on they are as large as their kind says."""
        for name in nodes:
            self.machines.settle(name)

    # -- out ---------------------------------------------------------------------------------------------

    def _add_nodes(self, count: int) -> tuple[str, ...]:
        if not count:
            return ()
        began = self.clock.now()
        added = self.machines.add(count)
        if added:
            self.steps.append(f"{', '.join(added)} up after {self.clock.now() - began:.1f} s")
        return added

    def _add_executors(self, nodes: int, added: tuple[str, ...]) -> None:
        began, wanted = self.clock.now(), nodes * self.machines.kind.executors
        self.monitor.link.ask("executors", total=wanted)

        def here() -> bool:
            hosts = [self.machines.of(one) for one in self.monitor.executors if one["ready"]]
            per_node = self.machines.kind.executors
            return len(hosts) >= wanted and all(hosts.count(name) >= per_node for name in added)

        if not self._wait(here, self.executor_seconds):
            registered = len(self.monitor.executors)
            raise RheostatError(
                f"{registered} of {wanted} executors registered in {self.executor_seconds:g} s; rolled back"
            )
        self.steps.append(f"{wanted} executors registered after {self.clock.now() - began:.1f} s")

    def _take_back(self, added: tuple[str, ...], before: Configuration) -> None:
        """Return to what ran before; the error that led here is the one to tell."""
        try:
            self.monitor.link.ask("executors", total=before.nodes * self.machines.kind.executors)
            if added:
                self._release(added)
        except RheostatError as error:
            self.steps.append(f"rolling back: {error}")
        for name in added:
            if name in self.machines.names():
                self.machines.remove(name)

    # -- parallelism -------------------------------------------------------------------------------------

    def _stateful_change(self, before: Mapping[str, int], target: Mapping[str, int]) -> int | None:
        wanted = [target[o.name] for o in self.topology.operators if o.stateful]
        had = [before[o.name] for o in self.topology.operators if o.stateful]
        return max(wanted) if wanted and wanted != had else None

    def _check_state(self, before: Configuration, target: Configuration) -> None:
        """Refuse beforehand what Spark cannot rewrite."""
        if self._stateful_change(before.parallelism, target.parallelism) is not None:
            why = self.monitor.link.ask("refusal")
            if why:
                raise UserError(f"the stateful operators keep their parallelism: {why}")

    def _check_slots(self, target: Configuration) -> None:
        """In Real-Time Mode every instance holds a slot; a query that lacks one dies."""
        if self.realtime and target.instances > self.monitor.slots:
            raise RheostatError(
                f"{target.instances} instances need a slot each, there are {self.monitor.slots}; rolled back"
            )

    def _set_parallelism(self, before: Mapping[str, int], target: Mapping[str, int]) -> bool:
        stateless = {
            o.name: target[o.name]
            for o in self.topology.operators
            if not o.stateful and self.topology.inputs[o.name] and target[o.name] != before[o.name]
        }
        count = self._stateful_change(before, target)
        if stateless:
            self.monitor.link.ask("parallelism", targets=stateless)
        if count is not None:
            try:
                done = self.monitor.link.ask("rescale", timeout=RESCALE_SECONDS, count=count)
            except RheostatError:
                if stateless:
                    self.monitor.link.ask("parallelism", targets={name: before[name] for name in stateless})
                raise
            self.pause_seconds = done["pause_seconds"]
            self.steps.append(
                f"state rewritten for {count} instances, stood still for {self.pause_seconds:.1f} s"
            )
        if stateless:
            words = ", ".join(f"{name} {before[name]} -> {count}" for name, count in stateless.items())
            self.steps.append(words)
        return bool(stateless) or count is not None

    def _wait_for_batch(self) -> None:
        """Wait for a batch that began after the change: from then on nothing runs as it was."""
        began = self.clock.now()
        fresh: list[Batch] = []

        def ended() -> bool:
            fresh.extend(batch for batch in self.monitor.recent if batch.started >= began)
            return bool(fresh)

        limit = max([BATCH_SECONDS, *(3 * batch.seconds for batch in self.monitor.recent)])
        if self._wait(ended, limit):
            self.steps.append(f"effective in batch {fresh[0].number}")
        else:
            self.steps.append(f"no batch ended within {limit:.0f} s after the change")

    # -- in ----------------------------------------------------------------------------------------------

    @staticmethod
    def _coming(plan: Plan) -> int:
        """How many nodes to start: those that the plan lists, or what the target has more."""
        if plan.placement.add or plan.placement.remove:
            return len(plan.placement.add)
        return max(0, plan.target.nodes - plan.current.nodes)

    def _leaving(self, plan: Plan) -> tuple[str, ...]:
        """The nodes to end: those that the plan names, or the youngest."""
        names = self.machines.names()
        if plan.placement.remove or plan.placement.add:
            return tuple(name for name in plan.placement.remove if name in names)
        surplus = plan.current.nodes - plan.target.nodes
        return names[-surplus:] if surplus > 0 else ()

    def _remove(self, leaving: tuple[str, ...], nodes: int) -> None:
        self.monitor.link.ask("executors", total=nodes * self.machines.kind.executors)
        self._release(leaving)
        for name in leaving:
            self.machines.remove(name)
        self.steps.append(f"{', '.join(leaving)} removed")

    def _release(self, nodes: tuple[str, ...]) -> None:
        """Let the executors of these nodes finish their tasks and go."""

        def there() -> list[str]:
            return [executor for executor, node in self.monitor.nodes_of_executors().items() if node in nodes]

        self.monitor.poll(self.clock.now())
        if not there():
            return
        self.monitor.link.ask("decommission", executors=there())
        if self._wait(lambda: not there(), LEAVING_SECONDS):
            return
        if self.realtime:
            raise RheostatError(
                f"executors {', '.join(there())} do not leave and may still be needed: they stay"
            )
        self.monitor.link.ask("kill", executors=there())  # a micro-batch runs their tasks again
        self._wait(lambda: not there(), LEAVING_SECONDS)

    def _wait(self, holds: Callable[[], bool], seconds: float) -> bool:
        until = self.clock.now() + seconds
        while True:
            self.monitor.poll(self.clock.now())
            if holds():
                return True
            if self.clock.now() >= until:
                return False
            self.clock.sleep(POLL_SECONDS)
