"""A scripted cluster and Spark application in virtual time, for the order of steps and for faults.

`World` holds the truth: nodes, executors, one query whose batches follow each other. `Clock`, `Nodes` and
`Driver` are its faces: the controller's clock, its nodes and its driver process, which speaks the real
protocol. A test damages the world and checks what the real engine, actuator and healer do about it. Nothing
sleeps, so a minute takes milliseconds. Everything the controller asks for is in `World.asked`, in order.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from rheostat.engines.spark import protocol, wire
from rheostat.engines.spark.connection import DriverLostError, DriverSilentError
from rheostat.engines.spark.driver_process import DriverProcess
from rheostat.engines.spark.engine import SparkEngine
from rheostat.engines.spark.events import read_events
from rheostat.engines.spark.protocol import ANSWER_SECONDS, A, Answer, Request
from rheostat.engines.spark.spec import Spec
from rheostat.model.configuration import Configuration, NodeKind
from rheostat.model.decision import Plan
from rheostat.model.errors import RheostatError, UserError
from rheostat.model.node import REGION, Node, Usage, choose_region

KIND = NodeKind(cores=1.0, slots=4, memory_mb=1024.0)
MASTER = "spark://scripted:7077"
CHAIN = ("in", "key", "total")  # a source, a stateless operator and one that keeps state
STEP_SECONDS = 0.1
TICK_SECONDS = 0.5
ROWS = 100  # of one batch


@dataclass
class Machine:
    """A node; one that is frozen keeps its executors, but they do nothing."""

    name: str
    kind: NodeKind
    ready_at: float
    alive: bool = True
    frozen_until: float = 0.0
    settled: bool = False


@dataclass
class Executor:
    """Takes tasks once it is ready; one that is decommissioned leaves when its batch is over."""

    id: str
    node: str
    ready_at: float
    leaving: bool = False


@dataclass
class World:
    """What there is; `step` lets time pass."""

    folder: Path
    mode: str = "microbatch"
    kind: NodeKind = KIND
    more_kinds: tuple[NodeKind, ...] = ()
    node_seconds: float = 5.0  # until an ordered node is up
    executor_seconds: float = 3.0
    batch_seconds: float = 1.0
    task_cpu_seconds: float = 0.001
    owned: bool = True  # whether the nodes are the controller's to start and end

    now: float = 0.0
    nodes: dict[str, Machine] = field(default_factory=dict)
    executors: dict[str, Executor] = field(default_factory=dict)
    wanted: int = 0  # executors that the application asks its Master for
    asked: list[str] = field(default_factory=list)
    parallelism: dict[str, int] = field(default_factory=dict)
    state: int = 2  # partitions of the state, in the checkpoint
    committed: list[int] = field(default_factory=list)  # batches
    deaths: list[str] = field(default_factory=list)  # of the query, and why
    running: dict[str, int] | None = None  # the parallelism of the batch that runs
    began: float = 0.0
    begun: bool = False
    silent_until: float = 0.0  # a source that is away
    drivers: int = 0
    events: list[dict[str, Any]] = field(default_factory=list)
    refuses_nodes: str = ""  # why no node can be ordered
    starts_executors: bool = True
    refuses_rewrites: str = ""  # why state cannot be rewritten, when asked
    rewrites: str = ""  # why a rewrite fails
    on_rescale: Callable[[], None] = lambda: None
    script: bool = False  # a plain one, which starts its query itself and keeps its parallelism
    sized: bool = False  # whether the controller let the script's driver begin
    planned: bool = True  # whether the first batch of the script's query is
    shuffles: bool = False  # whether the script's "key" begins with a repartition
    rewrite_seconds: float = 2.0  # of its state, before it starts
    rewriting: int | None = None  # into so many partitions
    failed: str = ""  # why the application ended last
    cut_short: bool = False  # a rewrite is begun in the checkpoint: Spark would not start the query
    _names: int = 0
    _ids: int = 0

    # -- time ---------------------------------------------------------------------------------------------

    def sleep(self, seconds: float) -> None:
        """Let time pass in small steps."""
        until = self.now + seconds
        while self.now < until:
            self.now = until if until - self.now < 1.5 * STEP_SECONDS else self.now + STEP_SECONDS
            self._launch()
            self._run()

    def _launch(self) -> None:
        """The Master starts executors on nodes with room while the application wants more."""
        for executor in list(self.executors.values()):
            if not self._up(executor.node):
                self._lose(executor, "its node is gone")
        if not self.starts_executors or not self.drivers:
            return
        for node in self.nodes.values():
            here = sum(executor.node == node.name for executor in self.executors.values())
            for _ in range(node.kind.executors - here if self._awake(node) else 0):
                if len([e for e in self.executors.values() if not e.leaving]) >= self.wanted:
                    return
                new = Executor(str(self._ids), node.name, self.now + self.executor_seconds)
                self._ids += 1
                self.executors[new.id] = new

    def _run(self) -> None:
        """Batches follow each other; in Real-Time Mode a query without a slot for each instance dies."""
        ready = self.ready()
        if self.rewriting is not None:
            self._rewrite(ready)
        if not self.begun or not self.drivers or self.now < self.silent_until:
            return
        if self.running is None:
            if self.mode == "realtime" and self.slots() < sum(self.parallelism.values()):
                self.die(f"{sum(self.parallelism.values())} instances, {self.slots()} slots")
            if ready:
                counts = self.script_tasks if self.script else self.parallelism
                self.running, self.began = {**counts, "total": self.state}, self.now
            return
        if self.now - self.began >= self.batch_seconds and all(
            self._awake(self.nodes[e.node]) for e in ready
        ):
            if ready:
                self._commit(ready)
            self.running = None
            for executor in [each for each in self.executors.values() if each.leaving]:
                self._lose(executor, "decommissioned")

    def _rewrite(self, ready: Sequence[Executor]) -> None:
        """A driver rewrites the state of a script on its executors; then the script starts."""
        if not ready:
            self.began = self.now
        elif self.now - self.began < self.rewrite_seconds:
            self.cut_short = True
        else:
            self.state = self.rewriting if self.rewriting and not self.rewrites else self.state
            self.rewriting, self.cut_short, self.begun = None, False, True

    def _commit(self, ready: Sequence[Executor]) -> None:
        assert self.running is not None
        number = len(self.committed)
        self.committed.append(number)
        tasks = {"in": 1, **self.running, "total": self.state}
        for index, name in enumerate(CHAIN):
            cpu = int(self.task_cpu_seconds * 1e9)
            held_ms = cpu / 1e6
            rows = ROWS // tasks[name]
            each = [[ready[n % len(ready)].id, cpu, rows, held_ms, n, rows] for n in range(tasks[name])]
            stage, count = 10 * number + index, len(each)
            self.events.append(
                {"event": "stage", "id": stage, "parents": [stage - 1] * (index > 0), "query": "q",
                 "batch": number, "tasks": count, "failed": False, "cpu_ns": cpu * count,
                 "run_ms": cpu * count / 1e6, "wait_ms": 0, "gc_ms": 0, "python_ms": 0, "each": each}
            )  # fmt: skip
        took = (self.now - self.began) * 1000
        progress = {"id": "q", "timestamp": _moment(self.began), "batchId": number, "numInputRows": ROWS,
                    "durationMs": {"triggerExecution": took, "addBatch": took}, "sources": [],
                    "observedMetrics": {name: {"rows": ROWS} for name in CHAIN}}  # fmt: skip
        self.events.append({"event": "progress", "progress": progress})

    def die(self, why: str) -> None:
        """The query dies; the driver's supervisor starts it again at once."""
        self.deaths.append(why)
        self.running = None
        self.events.append({"event": "note", "kind": "query", "text": f"died: {why}", "at": self.now * 1000})

    # -- what is there ------------------------------------------------------------------------------------

    def ready(self) -> list[Executor]:
        """Executors that take tasks."""
        return [e for e in self.executors.values() if e.ready_at <= self.now and not e.leaving]

    def slots(self) -> int:
        return len(self.ready()) * self.kind.slots // self.kind.executors

    @property
    def script_tasks(self) -> dict[str, int]:
        """The tasks of the script's stages: only those of its own repartition can be changed."""
        key = self.parallelism.get("key", 2) if self.shuffles else 2
        return {"in": 1, "key": key, "total": self.state}

    def alive(self) -> list[str]:
        return [node.name for node in self.nodes.values() if node.alive]

    def _up(self, node: str) -> bool:
        return node in self.nodes and self.nodes[node].alive

    def _awake(self, node: Machine) -> bool:
        return node.alive and node.frozen_until <= self.now and node.ready_at < self.now

    def add_node(self, kind: NodeKind, seconds: float = 0.0) -> str:
        self._names += 1
        name = f"n{self._names}"
        self.nodes[name] = Machine(name, kind, self.now + seconds)
        return name

    # -- faults -------------------------------------------------------------------------------------------

    def _lose(self, executor: Executor, why: str) -> None:
        self.executors.pop(executor.id, None)
        if self.mode == "realtime" and self.running is not None and not executor.leaving:
            self.die(f"executor {executor.id} is gone")
        text = {"event": "executor removed", "id": executor.id, "reason": why, "at": self.now * 1000}
        self.events.append(text)

    def kill_executor(self, which: int = -1) -> None:
        if self.executors:
            self._lose(list(self.executors.values())[which], "killed")

    def kill_node(self, which: int = -1) -> None:
        self.nodes[self.alive()[which]].alive = False

    def freeze(self, seconds: float) -> None:
        self.nodes[self.alive()[-1]].frozen_until = self.now + seconds

    def fail_driver(self, why: str) -> None:
        """It ends because the application failed, and leaves the reason."""
        self.kill_driver()
        self.failed = why

    def kill_driver(self) -> None:
        """Its executors end with it, and a batch that ran is lost; its checkpoint stays."""
        self.drivers, self.begun, self.running, self.rewriting = 0, False, None, None
        self.parallelism, self.sized = {}, False
        self.executors.clear()
        self.events.clear()
        self.wanted = 0


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()


@dataclass
class Clock:
    """The world's time; like the real one, it lets whoever watches the run look while it sleeps."""

    world: World
    on_tick: Callable[[], None] = lambda: None

    def now(self) -> float:
        return self.world.now

    def local_time(self, now: float) -> float:
        return now

    def sleep(self, seconds: float, roused: Callable[[], bool] = lambda: False) -> None:
        until = self.world.now + seconds
        while (left := until - self.world.now) > 1e-9:
            self.world.sleep(min(TICK_SECONDS, left))
            self.on_tick()
            if roused():
                return


class Nodes:
    """The world's nodes as a provider of the engine's."""

    decides, limited = False, True
    regions: tuple[str, ...] = (REGION,)

    def __init__(self, world: World) -> None:
        self.world, self.kinds, self.owned, self.losses = (
            world,
            (world.kind, *world.more_kinds),
            world.owned,
            0,
        )

    def nodes(self) -> tuple[Node, ...]:
        hosts = {executor.node for executor in self.world.executors.values()}
        return tuple(
            Node(name, machine.kind, REGION, machine.ready_at)
            for name, machine in self.world.nodes.items()
            if self.owned or name in hosts
        )

    def order(self, kind: NodeKind, region: str) -> Node:
        if self.world.refuses_nodes or not self.owned:
            raise RheostatError(self.world.refuses_nodes or "the nodes are not ours to order")
        place = choose_region(region, self.regions)
        name = self.world.add_node(kind, self.world.node_seconds)
        return Node(name, kind, place, self.world.nodes[name].ready_at)

    def wait(self, names: Sequence[str]) -> None:
        self.world.sleep(
            max([self.world.nodes[name].ready_at for name in names], default=0.0) - self.world.now
        )
        if names:
            self.world.asked.append(f"nodes {', '.join(names)}")

    def settle(self, name: str) -> None:
        self.world.nodes[name].settled = True

    def release(self, name: str) -> None:
        if self.owned and name not in self.world.nodes:
            raise RheostatError(f"there is no node {name!r}")
        self.world.asked.append(f"remove {name}")
        hosted = [executor.id for executor in self.world.executors.values() if executor.node == name]
        assert not hosted or not self.world.nodes[name].alive or self.world.nodes[name].frozen_until, hosted
        if self.owned:
            del self.world.nodes[name]

    def usage(self, name: str) -> Usage | None:
        return None

    def node_of(self, host: str, page: str) -> str:
        return host

    def refresh(self, hosts: Collection[str]) -> tuple[str, ...]:
        lost = tuple(machine.name for machine in self.world.nodes.values() if not machine.alive)
        for name in lost:
            del self.world.nodes[name]
        self.losses += len(lost)
        return lost if self.owned else ()

    def abandoned(self, name: str) -> bool:
        return self.world.nodes[name].frozen_until > self.world.now


class Driver:
    """The world's driver process as the controller sees it."""

    process, pid, has_left_reason = None, 0, False

    def __init__(self, world: World, spec: Spec) -> None:
        self.world, self.spec = world, spec
        assert not world.drivers, "two drivers at once"
        world.drivers += 1
        world.wanted = world.wanted or sum(
            node.kind.executors for node in world.nodes.values()
        )  # on all Workers
        self.hangs = False
        if world.script:
            self._start_script(spec)

    def _start_script(self, spec: Spec) -> None:
        """What was cut short is rolled back; the rewrites that are wanted come before the script."""
        world = self.world
        world.cut_short &= not spec.rewrites
        assert not world.cut_short, "Spark refuses a checkpoint in which a rewrite was cut short"
        world.rewriting = next((each.partitions for each in spec.rewrites if each.partitions), None)
        world.began, world.begun = world.now, world.rewriting is None

    @property
    def alive(self) -> bool:
        return self.world.drivers > 0

    def failure(self) -> RheostatError:
        return RheostatError(self.world.failed or "the driver process was killed by signal 9")

    def kill(self) -> None:
        self.world.kill_driver()

    def stop(self) -> float:
        self.world.kill_driver()
        return 0.0

    def hang_up(self) -> None:
        pass

    def ask(self, request: Request[A], timeout: float = ANSWER_SECONDS) -> A:
        if not self.alive:
            raise DriverLostError("the driver is gone")
        if self.hangs:
            self.world.sleep(timeout)
            raise DriverSilentError("the driver does not answer")
        asked = wire.read_request(wire.write_request(request))
        return wire.read_answer(request, wire.write_answer(self._answer(asked)))

    def _answer(self, request: protocol.AnyRequest) -> Answer:
        match request:
            case protocol.Describe():
                return self._describe()
            case protocol.TakeReport():
                return self._report()
            case protocol.CheckRescale():
                realtime = "Spark cannot rewrite it" if self.world.mode == "realtime" else None
                return protocol.Refusal(self.world.refuses_rewrites or realtime)
            case protocol.Rescale():
                return self._rescale(request)
            case _:
                self._change(request)
                return protocol.Done()

    def _describe(self) -> protocol.Description:
        world = self.world
        if world.script:
            return self._describe_script()
        steps = tuple(
            protocol.Step(
                name,
                inputs=CHAIN[max(0, n - 1) : n],
                query="in",
                stateful=name == "total",
                min_parallelism=1,
                max_parallelism=1 if name == "in" else 16,
            )
            for n, name in enumerate(CHAIN)
        )
        return protocol.Description(
            steps,
            trigger_seconds=world.batch_seconds,
            begun=world.begun,
            parallelism=dict(world.parallelism),
            state={"total": world.state} if world.committed else {},
            reserved=0,
            queries=self._queries(),
        )

    def _describe_script(self) -> protocol.Description:
        rewrites: tuple[protocol.StateRewrite, ...] = ()
        if self.spec.rewrites:
            failed = self.world.rewrites or None
            rewrites = (protocol.StateRewrite("c", self.world.rewrite_seconds, failed),)
        return protocol.Description(
            None, None, self.world.sized, {}, {}, 0, self._queries(), rewrites
        )  # fmt: skip

    def _queries(self) -> tuple[protocol.QueryStatus, ...]:
        """None, before a script has started its query."""
        world = self.world
        if world.script and not world.begun:
            return ()
        tasks, busy = world.parallelism, world.running is not None
        if world.script:
            tasks = world.script_tasks
        stages = tuple(
            protocol.QueryStage(
                name,
                tuple(range(max(0, n - 1), n)),
                world.script and name == "total",
                0 if world.shuffles and name == "key" else None,
                tasks.get(name),
            )
            for n, name in enumerate(CHAIN if world.planned else ())
        )
        run = f"r{len(world.deaths)}"
        return (protocol.QueryStatus("in", "q", run, busy, stages, checkpoint="c" if world.script else None),)

    def _report(self) -> protocol.Report:
        events, self.world.events = self.world.events, []
        slots = self.world.kind.slots // self.world.kind.executors
        executors = tuple(
            protocol.Executor(e.id, e.node, slots, ready=e.ready_at <= self.world.now)
            for e in self.world.executors.values()
        )
        return protocol.Report(read_events(events), executors, self._queries())

    def _change(self, request: protocol.AnyRequest) -> None:
        world = self.world
        match request:
            case protocol.Begin(parallelism):
                world.asked.append("begin")
                if world.script:  # its query runs already
                    world.sized = True
                    world.parallelism.update(parallelism)
                    return
                world.parallelism = {**parallelism, "total": world.state}
                world.begun = True
            case protocol.RequestExecutors(total):
                world.asked.append(f"executors {total}")
                world.wanted = total
            case protocol.Decommission(executors):
                world.asked.append(f"decommission {len(executors)}")
                for executor in executors:
                    world.executors[executor].leaving = True
            case protocol.KillExecutors(executors):
                world.asked.append(f"kill {len(executors)}")
                for executor in executors:
                    world._lose(world.executors[executor], "killed")
            case protocol.SetParallelism(targets):
                world.asked.append("parallelism " + ", ".join(f"{name}={n}" for name, n in targets.items()))
                world.parallelism.update(targets)
            case _:
                raise AssertionError(f"nobody asks for this: {request}")

    def _rescale(self, request: protocol.Rescale) -> protocol.Rescaled:
        self.world.asked.append(f"rescale {request.operator}={request.count}")
        self.world.on_rescale()
        if not self.alive:
            raise DriverLostError("the driver is gone")
        if self.world.rewrites:
            raise RheostatError(self.world.rewrites)
        if self.world.mode == "realtime":
            raise UserError("Spark cannot rewrite it")
        self.world.state = self.world.parallelism["total"] = request.count
        self.world.running = None
        return protocol.Rescaled(pause_seconds=2.0, rewrite_seconds=1.0)


def application(
    world: World, nodes: int = 1, key: int = 2, began: bool = True, watched: bool = False
) -> SparkEngine:
    """The real engine over a world, with its application running, perhaps watched by somebody who polls."""
    spec = Spec(
        "app",
        "app.py",
        "spark://scripted:7077",
        str(world.folder),
        str(world.folder / "s"),
        "c",
        mode=world.mode,
    )

    def start(new: Spec) -> DriverProcess:
        return cast(DriverProcess, Driver(world, new))

    provider, clock = Nodes(world), Clock(world)
    if world.owned:
        provider.wait([provider.order(world.kind, REGION).name for _ in range(nodes)])
    engine = SparkEngine(start(spec), provider, clock, 0.0, start, world.sleep)
    if began:
        state = 1 if world.mode == "realtime" else world.state
        world.state = state
        engine.begin(
            Configuration({"in": 1, "key": key, "total": state}, nodes * world.kind.executors, nodes)
        )
        live(engine, 4 * world.batch_seconds)
        world.asked.clear()
    if watched:
        clock.on_tick = engine.poll
    return engine


def names(engine: SparkEngine) -> tuple[str, ...]:
    """The nodes that an engine has, oldest first."""
    return tuple(node.name for node in engine.provider.nodes())


def live(engine: SparkEngine, seconds: float) -> None:
    """Let time pass for a controller that looks every half second, as a run's clock makes it."""
    until = engine.now() + seconds
    while engine.now() < until:
        engine.clock.sleep(0.5)
        engine.poll()


def change(engine: SparkEngine, nodes: int | None = None, **parallelism: int) -> Plan:
    """A plan for the running configuration."""
    now = engine.configuration
    count = now.nodes if nodes is None else nodes
    target = Configuration({**now.parallelism, **parallelism}, count * engine.kinds[0].executors, count)
    return Plan(1, engine.now(), now, target, "a test wants it", changes=target != now)
