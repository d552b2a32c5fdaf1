"""The Engine port on Spark: one application in a driver process, on nodes that come and go under it."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rheostat.analyze.execution import ExecutionModel, FixedTasks, Pipelined, Staged, ceil
from rheostat.control.ports import Clock, Provider
from rheostat.engines.spark.actuate.actuator import Actuator
from rheostat.engines.spark.actuate.healer import Healer
from rheostat.engines.spark.driver_process import DriverLostError, DriverProcess, EndedError
from rheostat.engines.spark.observe.monitor import Meter, Monitor
from rheostat.engines.spark.spec import Spec
from rheostat.model.configuration import Configuration, NodeKind
from rheostat.model.decision import Outcome, Plan, Status
from rheostat.model.errors import RheostatError, UserError
from rheostat.model.observation import Observation
from rheostat.model.topology import Operator, Stream, Topology

FIRST_STAGES_SECONDS = 120.0
DRIVER_ATTEMPTS = 5
FIRST_BACKOFF_SECONDS = 1.0
LONGEST_BACKOFF_SECONDS = 60.0
HEALTHY_SECONDS = 60.0  # a driver that ran so long starts the back-off anew
DEFAULT_TRIGGER_SECONDS = 10.0
FIRST_OVERHEAD_SECONDS = 0.1  # of a stage, until it is measured
ENDING_SECONDS = 10.0
LOOK_SECONDS = 0.1


class SparkEngine:
    """Runs a Spark application and changes its configuration while it runs."""

    def __init__(
        self,
        link: DriverProcess,
        provider: Provider,
        clock: Clock,
        began_at: float,
        start: Callable[[Spec], DriverProcess] = DriverProcess.start,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """`pause` waits like the clock's sleep, but nobody who watches the run polls meanwhile."""
        self.clock, self.provider, self._start, self._pause = clock, provider, start, pause
        self._realtime = link.spec.mode == "realtime"
        self.kinds: tuple[NodeKind, ...] = provider.kinds
        self.monitor = Monitor(link, provider, began_at, self._realtime)
        about = self._describe()
        self._declared = topology(link.spec.name, about, self._realtime)
        self.topology = self._declared if self._realtime else in_waves(self._declared)
        self.monitor.follow(queries(about, self.topology))
        self._reserved: int = about["reserved"]
        self._trigger: float | None = about["trigger_seconds"]
        self._begun: bool = about["begun"]
        self._parallelism = self._first_parallelism(about)
        self._settled = False
        self.doing = ""  # the change that is under way, in words
        self._reviving = False
        self._held = False  # whether a driver that was started again still lacks slots to begin
        self._actuator = Actuator(
            self.monitor, provider, clock, self._declared, self._realtime, self._reserved
        )
        self._healer = Healer(self._actuator)
        self._backoff, self._driver_started = FIRST_BACKOFF_SECONDS, clock.now()
        self.monitor.start = clock.now()

    # -- the port ----------------------------------------------------------------------------------------

    @property
    def configuration(self) -> Configuration:
        nodes, parallelism = self.provider.nodes(), dict(self._parallelism)
        if self._waves:
            slots = max(1, sum(node.kind.slots for node in nodes))
            parallelism = {name: min(tasks, slots) for name, tasks in parallelism.items()}
        return Configuration(parallelism, sum(node.kind.executors for node in nodes), len(nodes))

    @property
    def _waves(self) -> bool:
        """Whether none of its operators can change: how many of their tasks run at once, the slots say."""
        return self.topology is not self._declared

    @property
    def model(self) -> ExecutionModel:
        if self._realtime:
            return Pipelined(self._reserved)
        trigger = self._trigger or DEFAULT_TRIGGER_SECONDS
        seen = self.monitor.stage_overhead()
        kinds = {node.kind for node in self.provider.nodes()} or {self.kinds[0]}
        alone = min(max(1.0, min(kind.slots, 1 / kind.slot_cores)) for kind in kinds)
        return (FixedTasks if self._waves else Staged)(
            trigger,
            FIRST_OVERHEAD_SECONDS if seen is None else seen,
            self._declared.pinned,
            tuple(frozenset(query.operators) for query in self.monitor.queries.values()),
            node_slots=min(kind.slots for kind in kinds),
            alone=alone if self.provider.limited else 1.0,
        )

    def observe(self) -> Observation:
        self.poll()
        return self.monitor.observe(self.clock.now(), self.topology, self._parallelism, self._trigger)

    def apply(self, plan: Plan) -> Outcome:
        started, before = self.clock.now(), self.configuration
        if not plan.changes:
            return Outcome(Status.UNCHANGED, before, started, started, plan.reason, plan.causes)
        possible = self._possible(plan, before)
        self.doing = plan.target.describe(before)
        try:
            self._actuator.carry_out(possible)
        except RheostatError as error:
            if isinstance(error, UserError) and not self._actuator.touched:  # refused beforehand
                return Outcome(Status.FAILED, before, started, self.clock.now(), str(error))
            self._parallelism = dict(self._actuator.parallelism)  # a failed scale-in has lowered it already
            self.doing = ""
            self.poll()  # the driver or a node may be gone as well
            return self._outcome(Status.FAILED, before, started, str(error))
        finally:
            self.doing = ""
        self._parallelism = dict(self._actuator.parallelism)
        return self._outcome(Status.APPLIED, before, started, "")

    # -- beside the port ---------------------------------------------------------------------------------

    def begin(self, wanted: Configuration) -> None:
        """Bring up the first configuration and let the application start in it."""
        try:
            self._begin(wanted)
        except DriverLostError:
            raise self._ending(self.monitor.link) from None
        self.monitor.start = self.clock.now()

    def _begin(self, wanted: Configuration) -> None:
        self._actuator.prepare(max(wanted.nodes, self._nodes_in_use()))
        if not self._begun:
            if not self._waves:
                self._parallelism.update(wanted.parallelism)
            self._parallelism.update(self._state)
            self._check_begin()
            self.monitor.link.ask("begin", parallelism=self._parallelism)
            self._begun = True

    def _nodes_in_use(self) -> int:
        """Nodes without which a query that runs would die: a controller may have been killed in a change."""
        if not (self._begun and self._realtime):
            return 0
        return ceil(self.model.slots_for(self._parallelism) / self.kinds[0].slots)

    def _check_begin(self) -> None:
        needed = self.model.slots_for(self._parallelism)
        slots = min(self.monitor.slots, self._actuator.planned_slots)  # others are given back
        if self._realtime and needed > slots:
            raise UserError(
                f"Real-Time Mode gives {needed} instances a slot each, the nodes have {slots}: "
                "allow more with --nodes, or larger ones with --node slots=..."
            )

    def poll(self) -> None:
        """Fetch what happened; a driver process that died is started again, a node that ended replaced."""
        if self._reviving:
            return
        try:
            self.monitor.poll(self.clock.now())
            if not self.doing and self._healer.heal():
                self.monitor.forget(self.clock.now())
            if self._held:
                self._begin_again()
        except DriverLostError as error:
            if self.doing:
                raise  # the change that is under way fails, and is taken back first
            self._revive(str(error))
        if not self._settled and any(not batch.idle for batch in self.monitor.recent):
            self._settled = True  # the very first batch belongs to booting, too
            self._actuator.settle(tuple(node.name for node in self.provider.nodes()))

    def now(self) -> float:
        """Seconds since the run began."""
        return self.clock.now()

    def meter(self) -> Meter:
        """A meter of the nodes' CPU and memory."""
        return Meter(self.provider)

    # ----------------------------------------------------------------------------------------------------

    def _outcome(self, status: Status, before: Configuration, started: float, why: str) -> Outcome:
        now, actuator = self.clock.now(), self._actuator
        self.monitor.forget(now, changed=now)
        took = f"{self.configuration.describe(before)} in {now - started:.1f} s"
        return Outcome(
            status,
            self.configuration,
            started,
            now,
            why or took,
            pause_seconds=actuator.pause_seconds,
            steps=tuple(actuator.steps),
        )

    def _possible(self, plan: Plan, before: Configuration) -> Plan:
        """The stateful operators of one query have one parallelism: the largest that was wished for."""
        if self._waves:
            before = replace(before, parallelism=self._parallelism)
            return replace(plan, current=before, target=replace(plan.target, parallelism=self._parallelism))
        wished = dict(plan.target.parallelism)
        for query in self.monitor.queries.values():
            stateful = [name for name in query.operators if self.topology.operator(name).stateful]
            for name in stateful:
                wished[name] = max(wished[other] for other in stateful)
        return replace(plan, current=before, target=replace(plan.target, parallelism=wished))

    def _describe(self) -> dict[str, Any]:
        """Wait until the driver can tell what it runs: a plain script's stages show after its first batch."""
        for _ in range(int(FIRST_STAGES_SECONDS / LOOK_SECONDS)):
            link = self.monitor.link
            try:
                about: dict[str, Any] = link.ask("describe")
            except DriverLostError:
                raise self._ending(link) from None
            if about["steps"] is not None or any(query["stages"] for query in about["queries"]):
                return about
            self._pause(LOOK_SECONDS)
        raise UserError(
            f"the script ran no batch within {FIRST_STAGES_SECONDS:g} s: "
            "it must call writeStream...start(), and its source must have rows"
        )

    def _first_parallelism(self, about: Mapping[str, Any]) -> dict[str, int]:
        """As it runs: what was set last, before that as planned; the state has what its checkpoint has."""
        self._state: dict[str, int] = about["state"]
        planned = {s["operator"]: s["tasks"] for query in about["queries"] for s in query["stages"]}
        counts = planned | about["parallelism"] | self._state
        return {o.name: int(counts.get(o.name) or o.min_parallelism) for o in self._declared.operators}

    def _revive(self, why: str) -> None:
        """Start the driver process again from its checkpoint, later each time."""
        link = self.monitor.link
        failure = self._ending(link)
        link.kill()  # one that hangs
        if isinstance(failure, UserError | EndedError) or not self.monitor.recent:  # it never worked
            raise failure
        if self.clock.now() - self._driver_started > HEALTHY_SECONDS:
            self._backoff = FIRST_BACKOFF_SECONDS
        self._reviving = True
        try:
            for _ in range(DRIVER_ATTEMPTS):
                text = f"{why} ({failure}); it starts again in {self._backoff:g} s"
                self.monitor.note(self.clock.now(), "driver", text)
                self._pause(self._backoff)
                self._backoff = min(LONGEST_BACKOFF_SECONDS, 2 * self._backoff)
                self._driver_started = self.clock.now()
                try:
                    self._start_again(link.spec)
                    return
                except UserError:
                    raise
                except RheostatError as error:
                    failure = error
                    self.monitor.link.kill()  # it may have started and not got far
        finally:
            self._reviving = False
        raise RheostatError(f"the driver does not start any more: {failure}")

    def _start_again(self, spec: Spec) -> None:
        """Start a driver like one that died; its nodes and executors come back as others do."""
        self.monitor.another(self._start(spec))
        self._parallelism |= self._describe()["state"]
        self._actuator.request_executors()
        self._held = True
        self._begin_again()

    def _begin_again(self) -> None:
        """Let the query begin; in Real-Time Mode one that lacks a slot would die, so it waits for them."""
        ready = sum(int(one["slots"]) for one in self.monitor.executors if one["ready"])
        if self._realtime and ready < self.model.slots_for(self._parallelism):
            return
        self.monitor.link.ask("begin", parallelism=self._parallelism)
        self._held = False

    def _ending(self, link: DriverProcess) -> RheostatError:
        """Wait for the end of a driver that answers no more, or for its last word; why it ended."""
        for _ in range(int(ENDING_SECONDS / LOOK_SECONDS)):
            if not link.alive or link.has_left_word:
                break
            self._pause(LOOK_SECONDS)
        return link.failure()


def in_waves(declared: Topology) -> Topology:
    """The topology as a plan can change it: where all operators are pinned, the tasks that run at once.

    >>> fixed = Topology("totals", (Operator("scan", 0.0, 8, 8),))
    >>> in_waves(fixed).operator("scan").min_parallelism
    1
    """
    if len(declared.pinned) < len(declared.operators):
        return declared
    operators = tuple(replace(one, min_parallelism=1, stateful=False) for one in declared.operators)
    return Topology(declared.name, operators, declared.streams)


def topology(name: str, about: Mapping[str, Any], realtime: bool) -> Topology:
    """The topology that a driver describes: its declared steps, or the stages of a plain script's query."""
    if about["steps"] is not None:
        return _of_steps(name, about["steps"])
    stages: Sequence[Mapping[str, Any]] = about["queries"][0]["stages"]
    operators = tuple(_discovered(stage, realtime) for stage in stages)
    streams = tuple(
        Stream(stages[parent]["operator"], stage["operator"])
        for stage in stages
        for parent in stage["parents"]
    )
    return Topology(name, operators, streams)


def queries(about: Mapping[str, Any], found: Topology) -> dict[str, list[str]]:
    """The operators of each query, from below."""
    if about["steps"] is None:
        return {about["queries"][0]["name"]: list(found.names)}
    parts: dict[str, list[str]] = {}
    for step in about["steps"]:
        parts.setdefault(step["query"], []).append(step["name"])
    return parts


def _of_steps(name: str, steps: Sequence[Mapping[str, Any]]) -> Topology:
    """Who reads an operator gets all its rows: two readers double them."""
    readers = Counter(upstream for step in steps for upstream in step["inputs"])
    operators = tuple(
        Operator(s["name"], 0.0, s["min_parallelism"], s["max_parallelism"], s["stateful"]) for s in steps
    )
    streams = tuple(
        Stream(upstream, step["name"], float(readers[upstream]), 1 / readers[upstream])
        for step in steps
        for upstream in step["inputs"]
    )
    return Topology(name, operators, streams)


def _discovered(stage: Mapping[str, Any], realtime: bool) -> Operator:
    """A stage that begins with the script's own repartition can change its parallelism.

    A source whose tasks nobody knows takes the slots that there are, unless each task holds one for good.
    """
    own = stage["shuffle"] is not None and not stage["stateful"]
    if own or (stage["tasks"] is None and not realtime):
        return Operator(stage["operator"])
    tasks = int(stage["tasks"] or 1)
    return Operator(
        stage["operator"], min_parallelism=tasks, max_parallelism=tasks, stateful=stage["stateful"]
    )
