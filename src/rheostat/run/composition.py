"""Puts a run together: nodes, driver process, engine, journal and loop; and takes it apart again."""

import logging
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from rheostat.analyze.execution import ceil
from rheostat.control.clock import SystemClock
from rheostat.control.loop import Loop
from rheostat.control.ports import Clock, Provider
from rheostat.control.rescaling import Rescaling
from rheostat.control.turn import Turn
from rheostat.engines.spark.driver_process import DriverProcess, EndedError
from rheostat.engines.spark.engine import SparkEngine
from rheostat.engines.spark.spec import SPEC, CheckpointRewrite, Spec
from rheostat.journal.store import Journal
from rheostat.model.configuration import Configuration
from rheostat.model.decision import Placement, Status
from rheostat.model.errors import UserError
from rheostat.model.observation import Event
from rheostat.policies.base import Start
from rheostat.policies.foreign import first_configuration
from rheostat.run import control_api, folder
from rheostat.run.folder import JOURNAL
from rheostat.run.heartbeat import Heartbeat
from rheostat.run.order import Order, check_script, with_secret
from rheostat.run.site import Site, check_kinds, open_site, start_nodes
from rheostat.services.java import java_version, spark_home

LISTENING_SECONDS = 5.0
SPARK_STATE_PARTITIONS = 200  # Spark's default
HEAP_SHARE = 0.6  # of a node's memory, for the heaps of its executors
_logger = logging.getLogger(__name__)


@dataclass
class Running:
    """A run that is under way."""

    order: Order
    engine: SparkEngine
    loop: Loop
    journal: Journal
    clock: Clock
    began_at: float  # unix seconds of the clock's 0
    heartbeat: Heartbeat

    def turns(self, until: float = float("inf")) -> Iterator[Turn]:
        """Control until a time or the application's end; each turn is in the journal when it is yielded."""
        advice: str | None = None
        try:
            for turn in self.loop.run(until, self.engine.queries_since):
                if turn.plan.advice and not advice:
                    self.journal.note(Event(turn.plan.decided_at, "advice", turn.plan.advice))
                advice = turn.plan.advice
                yield turn
        except EndedError:
            return


@contextmanager
def start_run(order: Order, say: Callable[[str], None] = lambda _: None) -> Iterator[Running]:
    """Start everything; on the way out stop the application between two batches, then the nodes."""
    spark_home()
    java_version()
    check_script(order.script)
    check_kinds(order)
    if order.master and not order.resume:
        _check_master(order.master)
    if order.kafka:
        order = _with_kafka(order, order.kafka, say)
    order = with_secret(order)
    with ExitStack() as stack:
        stack.enter_context(folder.locked(order.folder, resume=order.resume))
        attached = DriverProcess.attach(order.folder.absolute()) if order.resume and order.master else None
        never_began = stack.enter_context(ExitStack())
        if not order.resume:
            never_began.callback(folder.remove_journal, order.folder)
        journal = stack.enter_context(Journal(order.folder / JOURNAL))
        facts, before = journal.facts(), last_configuration(journal)
        began_at = _began_at(facts) if order.resume else time.time()
        heartbeat = Heartbeat()
        clock = SystemClock(began_at, heartbeat.tick)
        stack.push(lambda _kind, error, _trace: journal.note(Event(clock.now(), "stopped", _why(error))))
        site = open_site(order, stack)
        drivers = [attached] if attached else []
        stack.callback(_stop_last, drivers)

        def start_driver(spec: Spec) -> DriverProcess:
            spec = replace(spec, socket=DriverProcess.socket_path(site.scratch))
            drivers.append(DriverProcess.start(spec, site.keep))
            return drivers[-1]

        if attached is None:
            nodes = order.bounds.nodes(before.nodes if before else 1)
            say(f"starting {nodes} node{'s' if nodes > 1 else ''} and the driver")
            start_nodes(site.provider, nodes, last_places(journal))
            start_driver(_spec(order, site))
        running = take_control(
            order, journal, clock, began_at, site.provider, drivers[-1], start_driver, heartbeat
        )
        never_began.pop_all()
        stack.enter_context(control_api.serving(order.folder, running.loop.requests))
        yield running


def take_control(
    order: Order,
    journal: Journal,
    clock: Clock,
    began_at: float,
    provider: Provider,
    driver: DriverProcess,
    start_driver: Callable[[Spec], DriverProcess],
    heartbeat: Heartbeat,
) -> Running:
    """Put engine and loop over a running driver; begin, or continue where the journal ends."""
    before, unfinished = last_configuration(journal), journal.pending()
    engine = SparkEngine(driver, provider, clock, began_at, start_driver)
    loop = Loop(
        engine,
        clock,
        order.policy,
        order.bounds,
        order.guards,
        rescaling=Rescaling(order.rescale),
        seed=order.seed,
        dry_run=order.dry_run,
        recorder=journal,
    )
    if newest := unfinished or journal.last():
        loop.resume(newest, journal.changed_at(clock.now() - order.guards.memory_seconds))
    engine.begin(_first(order, engine, before))
    if unfinished is not None:
        loop.reconcile(unfinished)
    journal.describe(_facts(order, engine, began_at))
    by = f"by process {os.getpid()} on {socket.gethostname()}"
    journal.note(Event(clock.now(), "resumed" if order.resume else "started", by))
    heartbeat.start(engine)
    return Running(order, engine, loop, journal, clock, began_at, heartbeat)


def _stop_last(drivers: list[DriverProcess]) -> None:
    for driver in drivers[-1:]:
        driver.stop(_logger.warning)


def _why(error: BaseException | None) -> str:
    if error is None:
        return "at its end"
    return str(error) if isinstance(error, Exception) else "interrupted"


def _spec(order: Order, site: Site) -> Spec:
    place, kind = order.folder.absolute(), order.kind
    return Spec(
        name=order.name,
        script=str(order.script.absolute()),
        arguments=order.arguments,
        master=site.master,
        folder=str(place),
        socket="",  # each driver process gets one of its own
        checkpoint=order.checkpoint or str(place / "checkpoint"),
        mode=order.mode,
        slots=max(1, kind.slots // kind.executors),
        executor_memory_mb=int(HEAP_SHARE * min(kind.memory_mb / kind.executors for kind in order.kinds)),
        trigger_seconds=order.trigger_seconds,
        kafka=order.kafka,
        settings={**_scratch(site), **order.settings},
        state_partitions=_state_partitions(order),
        rewrites=cut_short(order),
    )


def cut_short(order: Order) -> tuple[CheckpointRewrite, ...]:
    """The rewrites of a script's state that were begun when the run was killed, to be rolled back."""
    if not order.resume:
        return ()
    try:
        return Spec.read(order.folder / SPEC).without_rewrites.rewrites
    except (OSError, ValueError):  # there is none, or one of an earlier version
        return ()


def _state_partitions(order: Order) -> int | None:
    """As many as the most nodes have slots, so that state can use them all; more would cost time only.

    In Real-Time Mode every partition holds a slot all the time: there the script must say how many it wants.
    """
    if order.mode == "realtime":
        return None
    return min(SPARK_STATE_PARTITIONS, order.bounds.max_nodes * order.kind.slots)


def _scratch(site: Site) -> dict[str, str]:
    """Where executors on our nodes unpack libraries: what a killed one leaves goes with the nodes."""
    if site.scratch is None:
        return {}
    return {"spark.executor.defaultJavaOptions": f'"-Djava.io.tmpdir={site.scratch}"'}


def last_configuration(journal: Journal) -> Configuration | None:
    """The last one that worked: a change that a killed controller left half-way is rolled back."""
    if unfinished := journal.pending():
        return unfinished.plan.current
    last = journal.last()
    return last.outcome.configuration if last else None


def last_places(journal: Journal) -> list[tuple[str, str]]:
    """The kind and region of each node that ran last, oldest first: the newest window's, after its change."""
    newest = journal.pending() or journal.last()
    if newest is None:
        return []
    applied = isinstance(newest, Turn) and newest.outcome.status is Status.APPLIED
    change = newest.plan.placement if applied else Placement()
    nodes = [node for node in newest.observation.nodes if node.name not in change.remove]
    return [*((node.kind, node.region) for node in nodes), *change.add]


def _first(order: Order, engine: SparkEngine, before: Configuration | None) -> Configuration:
    """The configuration to start in: as the journal left it, within the bounds, or as the policy begins."""
    if before is not None:
        nodes = order.bounds.nodes(before.nodes)
        bounded = order.bounds.parallelism(engine.topology, before.parallelism)
        parallelism = {**before.parallelism, **bounded}  # a script's plan may not be known yet
        return Configuration(parallelism, nodes * order.kind.executors, nodes)
    start = Start(engine.topology, engine.model, engine.kinds, order.bounds, 0.0, 0.0)
    chosen = first_configuration(order.policy, start)
    if engine.model.takes_turns:
        slots = (order.bounds.max_nodes if order.allocated else chosen.nodes) * order.kind.slots
        wanted = engine.model.filling(chosen.parallelism, slots)
        return replace(chosen, parallelism=order.bounds.parallelism(engine.topology, wanted))
    nodes = order.bounds.nodes(
        max(chosen.nodes, ceil(engine.model.slots_required(chosen.parallelism) / order.kind.slots))
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
    from rheostat.services import kafka_broker  # noqa: PLC0415 - most runs need no Kafka client

    kafka_broker.must_answer(servers)
    given = order.settings
    if "spark.jars.packages" in given:
        return order
    jars = [*filter(None, [given.get("spark.jars")]), *map(str, kafka_broker.connector_jars(say))]
    return replace(order, settings={**given, "spark.jars": ",".join(jars)})
