"""Carries out a plan in the order that loses nothing, checks every step, and goes back when one fails.

Out: nodes, then executors registered, then parallelism. In: parallelism, a batch boundary, then executors,
then nodes. A plan that does both does the first half of each before the second. A node or a driver that is
lost meanwhile is a step that fails. In micro-batch, where tasks may wait for slots, those for the nodes that
come are made beforehand: a batch that runs when they come has work for them.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from threading import Thread
from typing import Any

from rheostat.control.ports import Clock, Provider
from rheostat.engines.spark.observe.monitor import Monitor
from rheostat.model.configuration import Configuration, NodeKind
from rheostat.model.decision import Plan
from rheostat.model.errors import RheostatError, UserError
from rheostat.model.topology import Topology

EXECUTOR_SECONDS = 60.0  # for executors to come while the application runs
FIRST_SECONDS = 180.0  # for those that it starts with: before them nothing runs that would wait
LEAVING_SECONDS = 60.0
BATCH_SECONDS = 30.0
RESCALE_SECONDS = 600.0
POLL_SECONDS = 0.2


NodeWish = tuple[NodeKind, str]  # a kind and a region


def _nothing(_step: str) -> None:
    pass


def _executors(nodes: Sequence[NodeWish]) -> int:
    return sum(kind.executors for kind, _ in nodes)


def _larger(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: max(count, other[name]) for name, count in one.items()}


@dataclass
class Actuator:
    """Changes a running application; everything it waits for, it waits for with a limit."""

    monitor: Monitor
    provider: Provider
    clock: Clock
    topology: Topology
    realtime: bool
    reserved: int = 0  # slots that readers inside a graph hold in Real-Time Mode
    executor_seconds: float = EXECUTOR_SECONDS
    steps: list[str] = field(default_factory=list)  # what was done, in words
    pause_seconds: float = 0.0
    parallelism: Mapping[str, int] = field(default_factory=dict)  # what runs, however far a plan got
    touched: bool = False  # whether the plan got so far that something was changed
    planned: tuple[NodeWish, ...] = ()  # the nodes that were decided on, whatever happened to them since
    before_step: Callable[[str], None] = _nothing  # told each step's name; faults are put in here

    def carry_out(self, plan: Plan) -> None:
        """Bring the application to the plan's target, or raise RheostatError with everything as it was."""
        self.steps, self.pause_seconds, self.touched = [], 0.0, False
        before, target = plan.current, plan.target
        self.parallelism = before.parallelism
        coming, leaving = self._coming(plan), self._leaving(plan)
        there = self._wishes(before.nodes)
        staying = [(node.kind, node.region) for node in self.provider.nodes() if node.name not in leaving]
        self._check_state(before, target)
        self.touched = True
        self.monitor.begin_change()
        added: tuple[str, ...] = ()
        try:
            if coming and not self.realtime:
                self._set_stateless(before.parallelism, _larger(before.parallelism, target.parallelism))
            added = self._add_nodes(coming)
            if coming or target.executors > before.executors:
                self._add_executors((*there, *coming), added)
                self.settle(added)
            self._check_slots(target)
            self.before_step("parallelism")
            changed = self._set_parallelism(before.parallelism, target.parallelism)
        except RheostatError as error:
            if not self._take_back(added, there, before, target):
                raise
            raise type(error)(f"{error}; rolled back") from error
        self.parallelism = target.parallelism
        if coming:
            self.planned = (*there, *coming)
        if changed:
            self.before_step("batch")
            if leaving:
                self._wait_for_batch(changed)
        if leaving:
            self._remove(leaving, (*staying, *coming))
            self.planned = (*staying, *coming)
        self.before_step("end")

    def prepare(self, nodes: int) -> None:
        """Have so many nodes with their executors before anything runs on them, and no more."""
        self.monitor.poll(self.clock.now())
        planned = self._wishes(nodes)
        self._add_nodes(self._missing(planned))
        self._add_executors(planned, self.names(), FIRST_SECONDS)
        if surplus := self.names()[nodes:]:
            self._remove(surplus, planned)
        self.planned = planned

    def replace_lost(self) -> tuple[str, ...]:
        """Start what is missing of the nodes that were decided on, and see their executors registered."""
        added = self._order(self._missing(self.planned))
        try:
            self._add_executors(self.planned, added)
        finally:
            self.settle(tuple(name for name in added if name in self.names()))
        return added

    def give_back(self) -> tuple[str, ...]:
        """Let executors go that are more than was decided on; returns their nodes."""
        surplus = self.names()[len(self.planned) :] if self.planned else ()
        if not surplus or len(self.monitor.executors) <= _executors(self.planned):
            return ()
        self._remove(surplus, self.planned)
        return surplus

    def request_executors(self) -> None:
        """Ask for as many executors as were decided on; a new driver, or one that lost some, needs it."""
        self.monitor.link.ask("executors", total=_executors(self.planned))

    def names(self) -> tuple[str, ...]:
        """The nodes that are there, oldest first."""
        return tuple(node.name for node in self.provider.nodes())

    @property
    def planned_slots(self) -> int:
        """The slots of all nodes that were decided on."""
        return sum(kind.slots for kind, _ in self.planned)

    @property
    def whole(self) -> bool:
        """Whether all nodes that were decided on are there, with their executors."""
        return len(self.names()) >= len(self.planned) and len(self._hosts()) >= _executors(self.planned)

    def _hosts(self) -> list[str]:
        """The node of each executor that takes tasks; Spark keeps some for a while whose node is gone."""
        there = self.names()
        hosts = [self.monitor.node_of(executor) for executor in self.monitor.executors if executor["ready"]]
        return [name for name in hosts if name in there]

    def _wishes(self, count: int) -> tuple[NodeWish, ...]:
        """So many nodes as they are, the oldest first; what is missing is of the default kind."""
        there = [(node.kind, node.region) for node in self.provider.nodes()][:count]
        default = (self.provider.kinds[0], self.provider.regions[0])
        return (*there, *[default] * (count - len(there)))

    def _missing(self, planned: Sequence[NodeWish]) -> list[NodeWish]:
        """What has to be ordered; nodes of somebody else's come with the executors that are requested."""
        if not self.provider.owned:
            return []
        there = Counter((node.kind, node.region) for node in self.provider.nodes())
        return list((Counter(planned) - there).elements())

    def settle(self, nodes: tuple[str, ...]) -> None:
        """These nodes are up: from now on they are as large as their kind says."""
        for name in nodes:
            self.provider.settle(name)

    # -- out ---------------------------------------------------------------------------------------------

    def _add_nodes(self, wishes: Sequence[NodeWish]) -> tuple[str, ...]:
        if not wishes:
            return ()
        self.before_step("nodes")
        began = self.clock.now()
        added = self._order(wishes)
        if added:
            self.steps.append(f"{', '.join(added)} up after {self.clock.now() - began:.1f} s")
        return added

    def _order(self, wishes: Sequence[NodeWish]) -> tuple[str, ...]:
        """Order nodes, and wait until they can take executors."""
        if not self.provider.owned:
            return ()
        ordered: list[str] = []
        try:
            for kind, region in wishes:
                ordered.append(self.provider.order(kind, region).name)
            self.provider.wait(ordered)
        except RheostatError:
            for name in set(ordered) & set(self.names()):
                self.provider.release(name)
            raise
        return tuple(ordered)

    def _add_executors(
        self, planned: Sequence[NodeWish], added: tuple[str, ...], seconds: float | None = None
    ) -> None:
        limit = self.executor_seconds if seconds is None else seconds
        began, wanted, losses = self.clock.now(), _executors(planned), self.provider.losses
        self.monitor.link.ask("executors", total=wanted)
        self.before_step("executors")

        def here() -> bool:
            if self.provider.losses > losses:
                raise RheostatError("a node ended by itself before its executors were registered")
            hosts = self._hosts()
            return len(hosts) >= wanted and all(
                hosts.count(node.name) >= node.kind.executors
                for node in self.provider.nodes()
                if node.name in added
            )

        if not self._wait(here, limit):
            ready, known = len(self._hosts()), len(self.monitor.executors)
            others = f" ({known} registered)" if known != ready else ""  # not warm, or on a node that is gone
            raise RheostatError(f"{ready} of {wanted} executors were ready in {limit:g} s{others}")
        self.steps.append(f"{wanted} executors registered after {self.clock.now() - began:.1f} s")

    def _take_back(
        self,
        added: tuple[str, ...],
        there: Sequence[NodeWish],
        before: Configuration,
        target: Configuration,
    ) -> bool:
        """Return to what ran before; whether that was reached. The error that led here is the one to tell."""
        reached = self.parallelism == before.parallelism  # state that was rewritten stays so
        try:
            self._set_stateless(target.parallelism, before.parallelism)
            self.monitor.link.ask("executors", total=_executors(there))
            if added:
                self._release(added)
        except RheostatError as error:
            self.steps.append(f"rolling back: {error}")
            reached = False
        for name in added:
            if name in self.names():
                self.provider.release(name)
        return reached

    # -- parallelism -------------------------------------------------------------------------------------

    def _stateful_changes(self, before: Mapping[str, int], target: Mapping[str, int]) -> dict[str, int]:
        """For each query whose state shall be rewritten one of its stateful operators, and the new count."""
        changes = {}
        for query in self.monitor.queries.values():
            stateful = [name for name in query.operators if self.topology.operator(name).stateful]
            if any(target[name] != before[name] for name in stateful):
                changes[stateful[0]] = max(target[name] for name in stateful)
        return changes

    def _check_state(self, before: Configuration, target: Configuration) -> None:
        """Refuse beforehand what Spark cannot rewrite."""
        for name in self._stateful_changes(before.parallelism, target.parallelism):
            why = self.monitor.link.ask("refusal", operator=name)
            if why:
                raise UserError(f"the stateful operators keep their parallelism: {why}")

    def _check_slots(self, target: Configuration) -> None:
        """In Real-Time Mode every instance holds a slot; a query that lacks one dies."""
        needed = target.instances + self.reserved
        if self.realtime and needed > self.monitor.slots:
            raise RheostatError(f"{needed} instances need a slot each, there are {self.monitor.slots}")

    def _set_parallelism(self, before: Mapping[str, int], target: Mapping[str, int]) -> set[str]:
        """Change the operators; returns the queries that run otherwise from their next batch on."""
        stateless = self._set_stateless(before, target)
        rewritten = self._rewrite(self._stateful_changes(before, target))
        if stateless:
            words = ", ".join(f"{name} {before[name]} -> {count}" for name, count in stateless.items())
            self.steps.append(words)
        changed = {*stateless, *rewritten}
        return {query.name for query in self.monitor.queries.values() if changed & set(query.operators)}

    def _set_stateless(self, before: Mapping[str, int], target: Mapping[str, int]) -> dict[str, int]:
        """Change the stateless operators from the next batch on; returns those that are others then."""
        changed = {
            o.name: target[o.name]
            for o in self.topology.operators
            if not o.stateful and self.topology.inputs[o.name] and target[o.name] != before[o.name]
        }
        if changed:
            self.monitor.link.ask("parallelism", targets=changed)
        return changed

    def _rewrite(self, changes: Mapping[str, int]) -> list[str]:
        """Rewrite the state of one query after the other; returns an operator of each."""
        for name, count in changes.items():
            done = self._ask_for_rescale(name, count)
            query = next(query for query in self.monitor.queries.values() if name in query.operators)
            stateful = [other for other in query.operators if self.topology.operator(other).stateful]
            self.parallelism = {**self.parallelism, **dict.fromkeys(stateful, count)}
            self.pause_seconds = max(self.pause_seconds, done["pause_seconds"])
            self.steps.append(
                f"state rewritten for {count} instances, stood still for {done['pause_seconds']:.1f} s"
            )
        return list(changes)

    def _ask_for_rescale(self, operator: str, count: int) -> dict[str, Any]:
        """Ask, and keep the nodes there meanwhile: without executors a rewrite would wait for ever."""
        link, wanted, added = self.monitor.link, self._wishes(len(self.names())), list[str]()
        asked = Future[dict[str, Any]]()

        def ask() -> None:
            try:
                asked.set_result(link.ask("rescale", RESCALE_SECONDS, operator=operator, count=count))
            except Exception as error:
                asked.set_exception(error)

        Thread(target=ask, name="rescale", daemon=True).start()
        try:
            while not wait([asked], POLL_SECONDS).done:  # nobody else may ask meanwhile, so the clock stands
                added += self._replace_nodes(wanted)
            return asked.result()
        except BaseException:
            link.hang_up()  # an answer that comes later is nobody's
            raise
        finally:
            self.settle(tuple(name for name in added if name in self.names()))

    def _replace_nodes(self, wanted: Sequence[NodeWish]) -> tuple[str, ...]:
        """Start what was lost of these nodes; their executors come by themselves."""
        if not self.provider.owned:  # not ours to replace
            return ()
        lost = self.provider.refresh(())
        missing = self._missing(wanted)
        if not missing:
            return ()
        try:
            added = self._order(missing)
        except RheostatError as error:
            self.monitor.note(self.clock.now(), "node", f"{len(missing)} missing: {error}; tried again")
            return ()
        words = f"{', '.join(lost) or 'a node'} ended by itself, {', '.join(added)} came for it"
        self.monitor.note(self.clock.now(), "node", words)
        return added

    def _wait_for_batch(self, queries: set[str]) -> None:
        """Wait until no batch of these queries runs as it was: what they leave, nothing needs any more.

        A micro-batch that ends is followed by one that is planned anew; in Real-Time Mode a batch is seen
        to have been planned anew when it ends.
        """
        began = self.clock.now()
        fresh: dict[str, str] = {}
        word = "in" if self.realtime else "after"

        def ended() -> bool:
            for batch in self.monitor.recent:
                at = batch.started if self.realtime else batch.finished
                if at >= began and batch.query in queries:
                    when = "at once, as nothing came" if batch.idle else f"{word} batch {batch.number}"
                    fresh.setdefault(batch.query, when)
            return len(fresh) == len(queries)

        limit = max([BATCH_SECONDS, *(3 * batch.seconds for batch in self.monitor.recent)])
        if self._wait(ended, limit):
            self.steps.append(f"effective {' and '.join(dict.fromkeys(fresh.values()))}")
        else:
            late = " and ".join(sorted(queries - set(fresh)))
            self.steps.append(
                f"no batch {f'of {late} ' if late else ''}ended within {limit:.0f} s after the change"
            )

    # -- in ----------------------------------------------------------------------------------------------

    def _coming(self, plan: Plan) -> list[NodeWish]:
        """The nodes to start: those that the plan lists, or what the target has more."""
        kinds = {kind.name: kind for kind in self.provider.kinds}
        if plan.placement.add or plan.placement.remove:
            return [(kinds[kind], region) for kind, region in plan.placement.add]
        default = (self.provider.kinds[0], self.provider.regions[0])
        return [default] * max(0, plan.target.nodes - plan.current.nodes)

    def _leaving(self, plan: Plan) -> tuple[str, ...]:
        """The nodes to end: those that the plan names, or the youngest."""
        names = self.names()
        if plan.placement.remove or plan.placement.add:
            return tuple(name for name in plan.placement.remove if name in names)
        surplus = plan.current.nodes - plan.target.nodes
        return names[-surplus:] if surplus > 0 else ()

    def _remove(self, leaving: tuple[str, ...], planned: Sequence[NodeWish]) -> None:
        """Release these nodes, so that the planned ones are left."""
        self.before_step("release")
        self.monitor.poll(self.clock.now())
        there = self.names()  # one that was to stay may have ended by itself: then another stays
        leaving = tuple(name for name in leaving if name in there)[: max(0, len(there) - len(planned))]
        self.monitor.link.ask("executors", total=_executors(planned))
        self._release(leaving)
        self.before_step("remove")
        for name in leaving:
            if name in self.names():  # it may have ended by itself
                self.provider.release(name)
        self.steps.append(f"{', '.join(leaving) or 'no node'} removed")

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
