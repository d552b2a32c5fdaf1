"""Carries out a plan in the order that loses nothing, checks every step, and rolls back when one fails.

Out: nodes, then executors registered, then parallelism. In: parallelism, a batch boundary, then executors,
then nodes. A plan that does both does the first half of each before the second. A node or a driver that is
lost meanwhile is a step that fails. In micro-batch, where tasks may wait for slots, the tasks for the new
nodes are made beforehand: a batch that runs when these come up has work for them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rheostat.control.ports import Clock, Provider
from rheostat.engines.spark.actuate.ordering import order
from rheostat.engines.spark.actuate.state_rewrite import StateRewrite
from rheostat.engines.spark.actuate.truths import Place, Size, Truths
from rheostat.engines.spark.actuate.waiting import wait_for_batch, wait_until
from rheostat.engines.spark.observe.monitor import Monitor
from rheostat.engines.spark.protocol import (
    Channel,
    CheckRescale,
    Decommission,
    KillExecutors,
    RequestExecutors,
    Rescale,
    SetParallelism,
)
from rheostat.model.configuration import Configuration
from rheostat.model.decision import Plan
from rheostat.model.errors import RheostatError, UserError
from rheostat.model.topology import Topology

EXECUTOR_SECONDS = 60.0  # for executors to register while the application runs
FIRST_SECONDS = 180.0  # for the first ones: nothing runs yet that would have to wait
LEAVING_SECONDS = 60.0


def _nothing(_step: str) -> None:
    pass


def _larger(counts: Mapping[str, int], others: Mapping[str, int]) -> dict[str, int]:
    return {name: max(count, others[name]) for name, count in counts.items()}


@dataclass
class Actuator:
    """Changes a running application; every wait has a limit."""

    channel: Channel
    monitor: Monitor
    truths: Truths
    provider: Provider
    clock: Clock
    topology: Topology
    realtime: bool
    reserved: int = 0  # slots that readers inside a graph hold in Real-Time Mode
    executor_seconds: float = EXECUTOR_SECONDS
    steps: list[str] = field(default_factory=list)  # what was done, in words
    pause_seconds: float = 0.0
    parallelism: Mapping[str, int] = field(default_factory=dict)  # what runs, however far a plan got
    touched: bool = False  # whether the plan got far enough to change something
    before_step: Callable[[str], None] = _nothing  # called with each step's name; tests inject faults here

    def carry_out(self, plan: Plan) -> None:
        """Bring the application to the plan's target, or raise RheostatError with everything as it was."""
        self.steps, self.pause_seconds, self.touched = [], 0.0, False
        before, target = plan.current, plan.target
        self.parallelism = before.parallelism
        coming, leaving = self._coming(plan), self._leaving(plan)
        there, staying = self.truths.first(before.nodes), self.truths.without(leaving)
        self._check_state(before, target)
        self.touched = True
        self.monitor.begin_change()
        added: tuple[str, ...] = ()
        try:
            if coming and not self.realtime:
                self._set_stateless(before.parallelism, _larger(before.parallelism, target.parallelism))
            added = self._add_nodes(coming)
            if coming or target.executors > before.executors:
                self._add_executors(there + coming, added)
                self.settle(added)
            self._check_slots(target)
            self.before_step("parallelism")
            changed = self._set_parallelism(before.parallelism, target.parallelism)
        except RheostatError as error:
            if not self._roll_back(added, there, before, target):
                raise
            raise type(error)(f"{error}; rolled back") from error
        self.parallelism = target.parallelism
        if coming:
            self.truths.planned = there + coming
        if changed:
            self.before_step("batch")
            if leaving:
                self.steps.append(wait_for_batch(self.monitor, self.clock, changed, self.realtime))
        if leaving:
            self._remove(leaving, staying + coming)
            self._plan_what_stayed(staying + coming)
        self.before_step("end")

    def _plan_what_stayed(self, size: Size) -> None:
        """A node that was to stay may have ended by itself: then one that was to leave stayed for it."""
        observed = self.truths.observed
        self.truths.planned = observed if observed.nodes == size.nodes else size
        if self.truths.planned != size:
            self.request_planned()

    def prepare(self, nodes: int) -> None:
        """Have exactly this many nodes, with their executors, before anything runs on them."""
        self.monitor.poll(self.clock.now())
        size = self.truths.first(nodes)
        self._add_nodes(self.truths.lacking(size))
        self._add_executors(size, self.truths.names, FIRST_SECONDS)
        if surplus := self.truths.names[nodes:]:
            self._remove(surplus, size)
        self.truths.planned = size

    def replace_lost(self) -> tuple[str, ...]:
        """Start the planned nodes that are missing, and wait until their executors are registered."""
        added = order(self.provider, self.truths.missing)
        try:
            self._add_executors(self.truths.planned, added)
        finally:
            self.settle(tuple(name for name in added if name in self.truths.names))
        return added

    def release_surplus(self) -> tuple[str, ...]:
        """Let executors go that are more than planned; returns their nodes."""
        surplus, planned = self.truths.surplus, self.truths.planned
        if not surplus or len(self.monitor.executors) <= planned.executors:
            return ()
        self._remove(surplus, planned)
        return surplus

    def request_planned(self) -> None:
        """Ask for the planned executors again: a new driver, or one that lost some, needs it."""
        self._request_executors(self.truths.planned)

    def settle(self, nodes: tuple[str, ...]) -> None:
        """These nodes are up: limit them to the size of their kind from now on."""
        for name in nodes:
            self.provider.settle(name)

    # -- out ---------------------------------------------------------------------------------------------

    def _add_nodes(self, places: tuple[Place, ...]) -> tuple[str, ...]:
        if not places:
            return ()
        self.before_step("nodes")
        began = self.clock.now()
        added = order(self.provider, places)
        if added:
            self.steps.append(f"{', '.join(added)} started in {self.clock.now() - began:.1f} s")
        return added

    def _add_executors(self, size: Size, added: tuple[str, ...], seconds: float | None = None) -> None:
        limit = self.executor_seconds if seconds is None else seconds
        began, losses, wanted = self.clock.now(), self.provider.losses, size.executors
        self._request_executors(size)
        self.before_step("executors")

        def all_are_ready() -> bool:
            if self.provider.losses > losses:
                raise RheostatError("a node ended by itself before its executors were registered")
            hosts = self.truths.hosts()
            new = [node for node in self.provider.nodes() if node.name in added]
            return len(hosts) >= wanted and all(hosts.count(node.name) >= node.kind.executors for node in new)

        if not wait_until(self.monitor, self.clock, all_are_ready, limit):
            ready, registered = len(self.truths.hosts()), len(self.monitor.executors)
            others = (
                f" ({registered} registered)" if registered != ready else ""
            )  # cold, or their node is gone
            raise RheostatError(f"{ready} of {wanted} executors were ready in {limit:g} s{others}")
        self.steps.append(f"{wanted} executors registered after {self.clock.now() - began:.1f} s")

    def _request_executors(self, size: Size) -> None:
        self.truths.requested = size
        self.channel.ask(RequestExecutors(size.executors))

    def _roll_back(
        self, added: tuple[str, ...], there: Size, before: Configuration, target: Configuration
    ) -> bool:
        """Return to what ran before; whether that worked. The caller reports the error that led here."""
        reached = self.parallelism == before.parallelism  # state that was rewritten stays so
        try:
            self._set_stateless(target.parallelism, before.parallelism)
            self._request_executors(there)
            if added:
                self._release(added)
        except RheostatError as error:
            self.steps.append(f"rolling back: {error}")
            reached = False
        for name in added:
            if name in self.truths.names:
                self.provider.release(name)
        return reached

    # -- parallelism -------------------------------------------------------------------------------------

    def _stateful_changes(self, before: Mapping[str, int], target: Mapping[str, int]) -> dict[str, int]:
        """For each query whose state must be rewritten, one of its stateful operators and the new count."""
        changes = {}
        for query in self.monitor.queries.values():
            stateful = [name for name in query.operators if self.topology.operator(name).stateful]
            if any(target[name] != before[name] for name in stateful):
                changes[stateful[0]] = max(target[name] for name in stateful)
        return changes

    def _check_state(self, before: Configuration, target: Configuration) -> None:
        """Refuse what Spark cannot rewrite, before anything is changed."""
        for name in self._stateful_changes(before.parallelism, target.parallelism):
            if why := self.channel.ask(CheckRescale(name)).why:
                raise UserError(f"the stateful operators keep their parallelism: {why}")

    def _check_slots(self, target: Configuration) -> None:
        """In Real-Time Mode every instance holds a slot; a query that lacks a slot dies."""
        needed = target.instances + self.reserved
        if self.realtime and needed > self.monitor.slots:
            raise RheostatError(f"{needed} instances need a slot each, there are {self.monitor.slots}")

    def _set_parallelism(self, before: Mapping[str, int], target: Mapping[str, int]) -> set[str]:
        """Change the operators; returns the queries that run in the new size from their next batch on."""
        stateless = self._set_stateless(before, target)
        rewritten = self._rewrite(self._stateful_changes(before, target))
        if stateless:
            words = ", ".join(f"{name} {before[name]} -> {count}" for name, count in stateless.items())
            self.steps.append(words)
        changed = {*stateless, *rewritten}
        return {query.name for query in self.monitor.queries.values() if changed & set(query.operators)}

    def _set_stateless(self, before: Mapping[str, int], target: Mapping[str, int]) -> dict[str, int]:
        """Change the stateless operators from the next batch on; returns the new counts."""
        changed = {
            o.name: target[o.name]
            for o in self.topology.operators
            if not o.stateful and self.topology.inputs[o.name] and target[o.name] != before[o.name]
        }
        if changed:
            self.channel.ask(SetParallelism(changed))
        return changed

    def _rewrite(self, changes: Mapping[str, int]) -> list[str]:
        """Rewrite the state of one query after the other; returns an operator of each."""
        for name, count in changes.items():
            rewrite = StateRewrite(self.channel, self.monitor, self.truths, self.clock)
            pause = rewrite.run(Rescale(name, count)).pause_seconds
            query = next(query for query in self.monitor.queries.values() if name in query.operators)
            stateful = [other for other in query.operators if self.topology.operator(other).stateful]
            self.parallelism = {**self.parallelism, **dict.fromkeys(stateful, count)}
            self.pause_seconds = max(self.pause_seconds, pause)
            self.steps.append(f"state rewritten for {count} instances, paused for {pause:.1f} s")
        return list(changes)

    # -- in ----------------------------------------------------------------------------------------------

    def _coming(self, plan: Plan) -> tuple[Place, ...]:
        """The nodes to start: those that the plan lists, or as many as the target has more."""
        if plan.placement.add or plan.placement.remove:
            kinds = {kind.name: kind for kind in self.provider.kinds}
            return tuple((kinds[kind], region) for kind, region in plan.placement.add)
        return self.truths.default(max(0, plan.target.nodes - plan.current.nodes))

    def _leaving(self, plan: Plan) -> tuple[str, ...]:
        """The nodes to end: those that the plan names, or the youngest."""
        names = self.truths.names
        if plan.placement.remove or plan.placement.add:
            return tuple(name for name in plan.placement.remove if name in names)
        surplus = plan.current.nodes - plan.target.nodes
        return names[-surplus:] if surplus > 0 else ()

    def _remove(self, leaving: tuple[str, ...], size: Size) -> None:
        """Release these nodes, so that the others are of this size."""
        self.before_step("release")
        self.monitor.poll(self.clock.now())
        names = self.truths.names  # one that was to stay may have ended by itself: then another stays
        leaving = tuple(name for name in leaving if name in names)[: max(0, len(names) - size.nodes)]
        self._request_executors(size)
        self._release(leaving)
        self.before_step("remove")
        for name in leaving:
            if name in self.truths.names:  # it may have ended by itself
                self.provider.release(name)
        self.steps.append(f"{', '.join(leaving) or 'no node'} removed")

    def _release(self, nodes: tuple[str, ...]) -> None:
        """Let the executors of these nodes finish their tasks and leave."""

        def staying() -> tuple[str, ...]:
            hosts = self.monitor.nodes_of_executors()
            return tuple(executor for executor, node in hosts.items() if node in nodes)

        def all_have_left() -> bool:
            return not staying()

        self.monitor.poll(self.clock.now())
        if all_have_left():
            return
        self.channel.ask(Decommission(staying()))
        if wait_until(self.monitor, self.clock, all_have_left, LEAVING_SECONDS):
            return
        if self.realtime:
            raise RheostatError(
                f"executors {', '.join(staying())} did not leave in {LEAVING_SECONDS:g} s: "
                "they may still be needed, so they stay"
            )
        self.channel.ask(KillExecutors(staying()))  # a micro-batch runs their tasks again
        wait_until(self.monitor, self.clock, all_have_left, LEAVING_SECONDS)
