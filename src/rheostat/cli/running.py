"""Puts a run together: nodes, driver process, engine, journal and loop; and takes it apart again."""

import fcntl
import logging
import os
import secrets
import socket
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rheostat.analyze.execution import ceil
from rheostat.control.clock import SystemClock
from rheostat.control.guards import Guards
from rheostat.control.journal import Journal
from rheostat.control.loop import Loop, Turn
from rheostat.control.ports import Clock
from rheostat.engines.spark.engine import SparkEngine
from rheostat.engines.spark.link import EndedError, Keep, Link, keep_nothing
from rheostat.engines.spark.machines import AllocatedMachines, ForeignMachines, LocalMachines, Machines
from rheostat.engines.spark.spec import Spec
from rheostat.infrastructure.java import java_version, spark_home
from rheostat.infrastructure.local import LocalProvider
from rheostat.model.configuration import Bounds, Configuration, NodeKind
from rheostat.model.errors import UserError
from rheostat.model.observation import Event
from rheostat.policies.base import Policy, Start
from rheostat.policies.foreign import first_configuration

JOURNAL = "journal.sqlite"
LISTENING_SECONDS = 5.0
HEAP_SHARE = 0.6  # of a node's memory, for the heaps of its executors
_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Order:
    """What a user asked for."""

    name: str
    script: Path
    policy: Policy
    policy_text: str
    folder: Path
    arguments: tuple[str, ...] = ()
    mode: str = "microbatch"
    master: str | None = None  # None: the embedded cluster
    kind: NodeKind = NodeKind()
    bounds: Bounds = Bounds()
    guards: Guards = field(default_factory=Guards)
    checkpoint: str | None = None
    trigger_seconds: float | None = None
    kafka: str | None = None  # HOST:PORT of a broker; Spark gets its connector then
    allocated: bool = False  # Spark's dynamic allocation scales the executors; Rheostat only measures
    dry_run: bool = False
    resume: bool = False
    seed: int = 0
    settings: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass
class Running:
    """A run that is under way."""

    order: Order
    engine: SparkEngine
    loop: Loop
    journal: Journal
    clock: Clock
    began_at: float  # unix seconds of the clock's 0

    def turns(self, until: float = float("inf")) -> Iterator[Turn]:
        """Control until a time or the application's end; what is yielded is in the journal already."""
        try:
            for turn in self.loop.run(until):
                self.journal.add(turn)
                yield turn
        except EndedError:
            return


@contextmanager
def started(
    order: Order, say: Callable[[str], None], on_tick: Callable[[], None] = lambda: None
) -> Iterator[Running]:
    """Start everything; on the way out end the application between two batches, then the nodes."""
    spark_home()
    java_version()
    check_script(order.script)
    if order.master and not order.resume:
        _check_master(order.master)
    if order.kafka:
        order = _with_kafka(order, order.kafka, say)
    order = with_secret(order)
    with ExitStack() as stack:
        _check_journal(order, stack)
        link = Link.attach(order.folder.absolute()) if order.resume and order.master else None
        unused = stack.enter_context(ExitStack())  # a run that never began leaves no journal
        if not order.resume:
            unused.callback(_remove, order.folder / JOURNAL)
        journal = stack.enter_context(Journal(order.folder / JOURNAL))
        facts, last = journal.facts(), journal.last()
        began_at = _began_at(facts) if order.resume else time.time()
        clock = SystemClock(began_at, on_tick)
        stack.push(lambda _kind, error, _trace: journal.note(Event(clock.now(), "stopped", _why(error))))
        machines, keep = _machines(order, stack)
        if link is None:
            nodes = max(
                order.bounds.min_nodes,
                min(order.bounds.max_nodes, last.outcome.configuration.nodes if last else 1),
            )
            say(f"starting {nodes} node{'s' if nodes > 1 else ''} and the driver")
            machines.add(nodes)
            link = Link.start(_spec(order, machines), keep)
        links = [link]
        stack.callback(_stop_last, links)

        def start_again(spec: Spec) -> Link:
            links.append(Link.start(spec, keep))
            return links[-1]

        running = take_control(order, journal, clock, began_at, machines, link, start_again)
        unused.pop_all()
        yield running


def take_control(
    order: Order,
    journal: Journal,
    clock: Clock,
    began_at: float,
    machines: Machines,
    link: Link,
    start_driver: Callable[[Spec], Link],
) -> Running:
    """Put engine and loop over a driver that runs; begin, or go on where the journal ends."""
    last = journal.last()
    engine = SparkEngine(link, machines, clock, began_at, start_driver)
    loop = Loop(engine, clock, order.policy, order.bounds, order.guards, order.seed, dry_run=order.dry_run)
    if last is not None:
        loop.resume(last, journal.changed_at(clock.now() - order.guards.memory_seconds))
    engine.begin(_first(order, engine, last))
    journal.describe(_facts(order, engine, began_at))
    by = f"by process {os.getpid()} on {socket.gethostname()}"
    journal.note(Event(clock.now(), "resumed" if order.resume else "started", by))
    return Running(order, engine, loop, journal, clock, began_at)


def _stop_last(links: list[Link]) -> None:
    links[-1].stop(_logger.warning)


def _why(error: BaseException | None) -> str:
    if error is None:
        return "at its end"
    return str(error) if isinstance(error, Exception) else "interrupted"


def _machines(order: Order, stack: ExitStack) -> tuple[Machines, Keep]:
    """The nodes, and what ties a process to their life; elsewhere a driver outlives its controller."""
    if order.master:
        return ForeignMachines(order.master, order.kind), keep_nothing
    provider = stack.enter_context(LocalProvider(warn=_logger.warning, settings=order.settings))
    if order.allocated:
        return AllocatedMachines(provider, order.kind, order.bounds.max_nodes), provider.keep_session
    return LocalMachines(provider, order.kind), provider.keep_session


def _spec(order: Order, machines: Machines) -> Spec:
    kind = order.kind
    folder = order.folder.absolute()
    return Spec(
        name=order.name,
        script=str(order.script.absolute()),
        arguments=order.arguments,
        master=machines.url,
        folder=str(folder),
        socket=Link.socket_path(machines.scratch),
        checkpoint=order.checkpoint or str(folder / "checkpoint"),
        mode=order.mode,
        slots=max(1, kind.slots // kind.executors),
        executor_memory_mb=int(kind.memory_mb * HEAP_SHARE / kind.executors),
        trigger_seconds=order.trigger_seconds,
        kafka=order.kafka,
        settings={**_scratch(machines), **order.settings},
    )


def _scratch(machines: Machines) -> dict[str, str]:
    """Where executors on our nodes unpack libraries: what one leaves that is killed goes with the nodes."""
    if machines.scratch is None:
        return {}
    return {"spark.executor.defaultJavaOptions": f'"-Djava.io.tmpdir={machines.scratch}"'}


def _first(order: Order, engine: SparkEngine, last: Turn | None) -> Configuration:
    """The configuration to start in: as the journal left it, within the bounds, or as the policy begins."""
    if last is not None:
        left, nodes = last.outcome.configuration, order.bounds.nodes(last.outcome.configuration.nodes)
        parallelism = order.bounds.parallelism(engine.topology, left.parallelism)
        return Configuration(parallelism, nodes * order.kind.executors, nodes)
    start = Start(engine.topology, engine.model, engine.kinds, order.bounds, 0.0, 0.0)
    chosen = first_configuration(order.policy, start)
    if engine.model.name == "staged":  # stages take turns on all slots, so fewer tasks than slots waste them
        slots = (order.bounds.max_nodes if order.allocated else chosen.nodes) * order.kind.slots
        wanted = {name: max(count, slots) for name, count in chosen.parallelism.items()}
        return replace(chosen, parallelism=order.bounds.parallelism(engine.topology, wanted))
    nodes = order.bounds.nodes(
        max(chosen.nodes, ceil(engine.model.slots_for(chosen.parallelism) / order.kind.slots))
    )
    return replace(chosen, nodes=nodes, executors=nodes * order.kind.executors)


def _began_at(facts: dict[str, Any]) -> float:
    """When the run that is resumed began, in unix seconds; now, where its journal has no such time."""
    started, now = facts.get("started_at"), time.time()
    return float(started) if isinstance(started, int | float) and 0 < started <= now else now


def _facts(order: Order, engine: SparkEngine, began_at: float) -> dict[str, Any]:
    return {
        "application": order.name,
        "topology": engine.topology.name,
        "policy": order.policy_text,
        "mode": order.mode,
        "started_at": began_at,
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "script": str(order.script),
        "master": order.master or "embedded",
        "nodes": f"{order.bounds.min_nodes}:{order.bounds.max_nodes}",
        "dry_run": order.dry_run,
        **order.facts,
    }


def check_script(script: Path) -> None:
    """A script that cannot be read, or is no Python, is refused before anything starts."""
    try:
        with warnings.catch_warnings(action="ignore"):
            compile(script.read_bytes(), str(script), "exec")
    except FileNotFoundError:
        raise UserError(f"{script}: there is no such script") from None
    except OSError as error:
        raise UserError(f"{script}: cannot be read: {error.strerror or error}") from None
    except SyntaxError as error:
        raise UserError(f"{script}, line {error.lineno}: {error.msg}") from None
    except ValueError as error:
        raise UserError(f"{script}: {error}") from None


def _check_master(url: str) -> None:
    """Spark would try for a minute; a URL may name several places, one of which is enough."""
    why: Exception | None = None
    for place in url.removeprefix("spark://").split(","):
        host, _, port = place.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), LISTENING_SECONDS).close()
        except (OSError, ValueError, OverflowError) as error:
            why = error
        else:
            return
    raise UserError(f"no Spark Master answers at {url}: {why}")


def _with_kafka(order: Order, servers: str, say: Callable[[str], None]) -> Order:
    """Check that the broker answers, and give Spark its connector, unless the user brings one."""
    from rheostat.infrastructure import kafka

    kafka.must_answer(servers)
    given = order.settings
    if "spark.jars.packages" in given:
        return order
    jars = [*filter(None, [given.get("spark.jars")]), *map(str, kafka.connector_jars(say))]
    return replace(order, settings={**given, "spark.jars": ",".join(jars)})


def with_secret(order: Order) -> Order:
    """Without a secret every user of this machine could run programs as us on the embedded cluster."""
    if order.master or "spark.authenticate" in order.settings:
        return order
    own = {"spark.authenticate": "true", "spark.authenticate.secret": secrets.token_hex(32)}
    return replace(order, settings={**own, **order.settings})


def _check_journal(order: Order, stack: ExitStack) -> None:
    """A new run needs a folder without one, --resume a folder with one; either has it for itself."""
    journal = order.folder / JOURNAL
    if order.resume and not journal.exists():
        raise UserError(f"{order.folder} holds no run to resume: leave --resume out, or give its --folder")
    stack.enter_context(_alone(order.folder))
    if journal.exists() and not order.resume:
        raise UserError(
            f"{order.folder} holds an earlier run: continue it with --resume, or choose another with --folder"
        )


def _remove(journal: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        Path(f"{journal}{suffix}").unlink(missing_ok=True)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Two controllers of one application would fight; the lock goes with its process, however that ends."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "lock").open("w")
    except OSError as error:
        raise UserError(f"{folder}: cannot be written: {error.strerror or error}") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UserError(
                f"another controller runs {folder}: end it first, or choose another --folder"
            ) from None
        yield
