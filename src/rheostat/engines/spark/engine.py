"""The Engine port on Spark: one application in a driver process, on nodes that come and go under it."""

import time
from collections.abc import Callable, Collection
from dataclasses import replace

from rheostat.analyze.execution import ExecutionModel, FixedTasks, Pipelined, Staged, ceil
from rheostat.analyze.waiting import waiting_shares
from rheostat.control.ports import Clock, Provider
from rheostat.engines.spark.actuate.actuator import Actuator
from rheostat.engines.spark.actuate.healer import Healer
from rheostat.engines.spark.actuate.script_restart import ScriptRestart
from rheostat.engines.spark.actuate.truths import Truths
from rheostat.engines.spark.described_topology import as_changeable, first_parallelism, queries, topology
from rheostat.engines.spark.driver_keeper import DriverKeeper
from rheostat.engines.spark.driver_process import DriverLostError, DriverProcess
from rheostat.engines.spark.limits import LIMITS
from rheostat.engines.spark.observe.meter import Meter
from rheostat.engines.spark.observe.monitor import AIM_SECONDS, Monitor
from rheostat.engines.spark.protocol import Begin, CheckRescale, Description, QueryStatus, SetParallelism
from rheostat.engines.spark.spec import Spec
from rheostat.model.configuration import Configuration, NodeKind
from rheostat.model.decision import Outcome, Plan, Status
from rheostat.model.errors import RheostatError, UserError
from rheostat.model.observation import Observation
from rheostat.model.rewrite import Rewrite

FIRST_OVERHEAD_SECONDS = 0.1  # of a stage, until it is measured
REWRITE_ATTEMPTS = 3  # of a script's state, where the driver dies every time


class SparkEngine:
    """Runs a Spark application and changes its configuration while it runs."""

    def __init__(
        self,
        driver: DriverProcess,
        provider: Provider,
        clock: Clock,
        began_at: float,
        start: Callable[[Spec], DriverProcess],
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """`pause` waits like the clock's sleep, but without letting observers of the run poll."""
        self.clock, self.provider = clock, provider
        self._keeper = DriverKeeper(driver, start, clock, pause)
        self._realtime = driver.spec.mode == "realtime"
        self.kinds: tuple[NodeKind, ...] = provider.kinds
        aim_seconds = driver.spec.trigger_seconds or AIM_SECONDS
        self.monitor = Monitor(driver, provider, began_at, self._realtime, aim_seconds)
        described = self._keeper.describe()
        self._reserved, self._trigger = described.reserved, described.trigger_seconds or aim_seconds
        self._begun, self._state = described.begun, dict(described.state)
        self._parallelism: dict[str, int] = {}
        self._remembered: dict[str, int] = {}  # also of operators whose query does not run now
        self._adopt(described)
        self._waits: dict[str, float] = {}  # of each operator's slot time, in which it waits itself
        self._settled = False
        self._last_batch = 0.0  # when one had ended as the driver died last
        self._rewrite_attempts = 0  # in a row that did not come to an end
        self._rewrite_failure = ""  # why a rewrite of state failed: another one would be another pause
        self.doing = ""  # the change that is under way, in words
        self._waits_for_slots = False  # whether a restarted driver still lacks the slots to begin
        self.truths = Truths(self.monitor, provider)
        self._actuator = Actuator(
            driver,
            self.monitor,
            self.truths,
            provider,
            clock,
            self._declared,
            self._realtime,
            self._reserved,
        )
        self._healer = Healer(self._actuator)
        if described.steps is None:
            self.monitor.on_statuses = self._notice
        self.monitor.start = clock.now()

    def _adopt(self, described: Description) -> None:
        """Take over what the driver describes; operators that are known already keep their parallelism."""
        self._described = described
        self._declared = topology(self.driver.spec.name, described, self._realtime)
        self.topology = self._declared if self._realtime else as_changeable(self._declared)
        self.monitor.follow(queries(described))
        self._remembered |= self._parallelism
        fixed = self._declared.pinned
        kept = {name: count for name, count in self._remembered.items() if name not in fixed}
        first = first_parallelism(described, self._declared)
        self._parallelism = {name: kept.get(name, count) for name, count in first.items()}

    def _notice(self, statuses: tuple[QueryStatus, ...]) -> None:
        """A script's queries come and go, and their plans become known: then the topology is another one."""
        known = {query.name: query.stages for query in self._described.queries}
        # The plan of a query that was restarted is known only when its first batch is planned.
        seen = [
            query if query.stages else replace(query, stages=known.get(query.name, ())) for query in statuses
        ]
        if not seen or self.doing or {query.name: query.stages for query in seen} == known:
            return
        self._adopt(replace(self._described, queries=tuple(seen)))
        self._actuator.topology = self._declared
        if self._begun:  # the driver sets what it knows when it begins
            self.driver.ask(SetParallelism(self._parallelism))

    # -- the port ----------------------------------------------------------------------------------------

    @property
    def driver(self) -> DriverProcess:
        """The driver process that runs now."""
        return self._keeper.driver

    @property
    def configuration(self) -> Configuration:
        size, parallelism = self.truths.observed, dict(self._parallelism)
        if self._scales_nodes_only:
            slots = max(1, size.slots)
            parallelism = {name: min(tasks, slots) for name, tasks in parallelism.items()}
        return Configuration(parallelism, size.executors, size.nodes)

    @property
    def _scales_nodes_only(self) -> bool:
        """Whether no operator can change: then the slots decide how many of their tasks run at once."""
        return self.topology is not self._declared

    @property
    def model(self) -> ExecutionModel:
        if self._realtime:
            return Pipelined(self._reserved)
        trigger = min([query.aim_seconds for query in self.monitor.queries.values()], default=self._trigger)
        overhead = self.monitor.stage_overhead()
        kinds = {node.kind for node in self.provider.nodes()} or {self.kinds[0]}
        alone = min(max(1.0, min(kind.slots, 1 / kind.slot_cores)) for kind in kinds)
        return (FixedTasks if self._scales_nodes_only else Staged)(
            trigger,
            FIRST_OVERHEAD_SECONDS if overhead is None else overhead,
            self._declared.pinned,
            tuple(frozenset(query.operators) for query in self.monitor.queries.values()),
            node_slots=min(kind.slots for kind in kinds),
            alone=alone if self.provider.limited else 1.0,
            partition_seconds=self.monitor.partition_seconds(),
            waits=self._waits,
        )

    @property
    def alarmed(self) -> bool:
        return not self.doing and self.monitor.overloaded(self.clock.now())

    @property
    def plans_state(self) -> bool:
        return self._described.steps is not None

    def rewrite_refusal(self, operators: Collection[str]) -> str | None:
        if self._rewrite_failure:
            return f"it failed: {self._rewrite_failure}"
        if (longest := self.monitor.longest_batch(operators)) > LIMITS.batch_seconds:
            return (
                f"batches take up to {longest:.0f} s, and a stop interrupts them after "
                f"{LIMITS.batch_seconds:g} s: give it more cores, or fewer rows per trigger, first"
            )
        try:
            return next(filter(None, (self.driver.ask(CheckRescale(name)).why for name in operators)), None)
        except RheostatError as error:  # the next poll deals with a driver that is lost
            return str(error)

    def observe(self) -> Observation:
        self.poll()
        observed = self.monitor.observe(self.clock.now(), self.topology, self._parallelism)
        self._waits |= waiting_shares(observed)
        return observed

    def apply(self, plan: Plan) -> Outcome:
        started, before = self.clock.now(), self.configuration
        if not plan.changes:
            return Outcome(Status.UNCHANGED, before, started, started, plan.reason, plan.causes)
        possible = self._possible(plan, before)
        self.doing = plan.describe()
        try:
            if plan.rewrite is None:
                self._actuator.carry_out(possible)
            else:
                self._rewrite_state(plan.rewrite)
        except RheostatError as error:
            if isinstance(error, UserError) and not self._actuator.touched:  # refused beforehand
                return Outcome(Status.FAILED, before, started, self.clock.now(), str(error))
            self._parallelism = dict(self._actuator.parallelism)  # a failed scale-in has lowered it already
            self.doing = ""
            self.poll()  # the driver or a node may be gone as well
            return self._outcome(Status.FAILED, before, started, str(error))
        finally:
            self.doing = ""
        if plan.rewrite is not None:
            took = self.clock.now() - started
            return self._outcome(Status.APPLIED, before, started, f"{plan.rewrite.change} in {took:.1f} s")
        self._parallelism = dict(self._actuator.parallelism)
        return self._outcome(Status.APPLIED, before, started, "")

    # -- beside the port ---------------------------------------------------------------------------------

    def begin(self, wanted: Configuration) -> None:
        """Bring up the first configuration and let the application start in it."""
        try:
            self._begin(wanted)
        except DriverLostError:
            raise self._keeper.why_it_ended() from None
        self.monitor.start = self.clock.now()

    @property
    def queries_since(self) -> float | None:
        """When a plain script was first seen to run queries: before its controller was ready."""
        return self._keeper.queries_since if self._described.steps is None else None

    def _begin(self, wanted: Configuration) -> None:
        self._actuator.prepare(max(wanted.nodes, self._nodes_in_use()))
        if not self._begun:
            if not self._scales_nodes_only:
                self._remembered |= wanted.parallelism
                self._parallelism |= {
                    name: count for name, count in wanted.parallelism.items() if name in self._parallelism
                }
            self._parallelism.update(self._state)
            self._check_begin()
            self.driver.ask(Begin(self._parallelism))
            self._begun = True

    def _nodes_in_use(self) -> int:
        """Nodes that a running query needs to survive: a controller may have been killed during a change."""
        if not (self._begun and self._realtime):
            return 0
        return ceil(self.model.slots_for(self._parallelism) / self.kinds[0].slots)

    def _check_begin(self) -> None:
        needed = self.model.slots_for(self._parallelism)
        slots = min(self.monitor.slots, self.truths.planned.slots)  # executors beyond the plan are released
        if self._realtime and needed > slots:
            raise UserError(
                f"Real-Time Mode gives {needed} instances a slot each, the nodes have {slots}: "
                "allow more with --nodes, or larger ones with --node slots=..."
            )

    def poll(self) -> None:
        """Fetch what happened; restart a driver process that died, replace a node that ended."""
        if self._keeper.reviving:
            return
        try:
            self.monitor.poll(self.clock.now())
            if not self.doing and self._healer.heal():
                self.monitor.forget(self.clock.now())
            if self._waits_for_slots:
                self._begin_again()
        except DriverLostError as error:
            if self.doing:
                raise  # the change that is under way fails, and is rolled back first
            self._revive(str(error))
        if not self._settled and any(not batch.idle for batch in self.monitor.recent):
            self._settled = True  # starting up includes the first batch
            self._actuator.settle(self.truths.names)

    def now(self) -> float:
        """Seconds since the run began."""
        return self.clock.now()

    def meter(self) -> Meter:
        """A meter of the nodes' CPU and memory."""
        return self.monitor.meter()

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
        """The stateful operators of one query share one parallelism: the largest that the plan wants."""
        if self._scales_nodes_only:
            before = replace(before, parallelism=self._parallelism)
            return replace(plan, current=before, target=replace(plan.target, parallelism=self._parallelism))
        wanted = dict(plan.target.parallelism)
        for query in self.monitor.queries.values():
            stateful = [name for name in query.operators if self.topology.operator(name).stateful]
            for name in stateful:
                wanted[name] = max(wanted[other] for other in stateful)
        return replace(plan, current=before, target=replace(plan.target, parallelism=wanted))

    def _rewrite_state(self, rewrite: Rewrite) -> None:
        """Restart the script on rewritten state; what fails again and again is left alone."""
        if why := self.rewrite_refusal(rewrite.operators):
            self._actuator.touched = False
            raise UserError(why)
        self._rewrite_attempts += 1
        try:
            self._restart_script(rewrite)
        except RheostatError as error:
            if self._rewrite_attempts >= REWRITE_ATTEMPTS:
                self._rewrite_failure = self._rewrite_failure or str(error)
            raise
        self._rewrite_attempts = 0

    def _restart_script(self, rewrite: Rewrite) -> None:
        self._actuator.parallelism = self._parallelism
        restart = ScriptRestart(self._actuator, self._healer, self._start_driver)
        described = restart.run(self.driver, rewrite, self.monitor.statuses)
        self._adopt(described)
        self._actuator.topology = self._declared
        self.driver.ask(Begin(self._parallelism))
        if errors := [each.error for each in described.rewrites if each.error]:
            self._rewrite_failure = errors[0]
            raise RheostatError(f"the state could not be rewritten: {errors[0]}; the script runs as before")

    def _revive(self, why: str) -> None:
        """Restart the driver process from its checkpoint, unless it never worked."""
        if not self.monitor.recent:
            failure = self._keeper.why_it_ended()
            self.driver.kill()
            raise failure
        batch = max((batch.finished for batch in self.monitor.recent if not batch.idle), default=0.0)
        progressed, self._last_batch = batch > self._last_batch, batch
        self._keeper.revive(why, self._restart, self._note_driver, progressed=progressed)

    def _note_driver(self, text: str) -> None:
        self.monitor.note(self.clock.now(), "driver", text)

    def _restart(self, spec: Spec) -> None:
        """Start a driver like the one that died; its nodes and executors come back as others do."""
        self._start_driver(spec)
        self._parallelism |= self._keeper.describe().state
        self._actuator.request_planned()
        self._waits_for_slots = True
        self._begin_again()

    def _start_driver(self, spec: Spec) -> None:
        """Start a driver and hand its channel to all who use it."""
        self._actuator.channel = self._keeper.start(spec)
        self.monitor.connect(self._actuator.channel)

    def _begin_again(self) -> None:
        """Let the query begin; in Real-Time Mode it would die without its slots, so it waits for them."""
        ready = sum(executor.slots for executor in self.monitor.executors if executor.ready)
        if self._realtime and ready < self.model.slots_for(self._parallelism):
            return
        self.driver.ask(Begin(self._parallelism))
        self._waits_for_slots = False
