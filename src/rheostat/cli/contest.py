"""One run of a trial: an application under a load, scaled by a policy, by Spark itself, or not at all."""

import re
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event, Thread

import numpy as np
from pydantic import TypeAdapter, ValidationError

from rheostat.analyze.flow import Count, Floats, lag, rate
from rheostat.analyze.judging import Series
from rheostat.cli import run
from rheostat.cli.feed import Feed, feed
from rheostat.cli.running import Order, Running, started
from rheostat.control.guards import Guards
from rheostat.control.loop import Turn
from rheostat.engines.spark.engine import SparkEngine
from rheostat.model.configuration import Bounds, NodeKind
from rheostat.model.decision import Status
from rheostat.model.errors import FileError, RheostatError, UserError
from rheostat.policies.registry import build
from rheostat.workloads import parse_curve

PEERS = ("static-min", "static-peak", "spark-dra")  # besides policies
BILL_SECONDS = 0.25


@dataclass(frozen=True)
class Contest:
    """What all contestants have in common."""

    app: str
    script: Path
    curve: str
    seed: int
    nodes: Bounds
    node: NodeKind
    mode: str
    trigger_seconds: float
    period_seconds: float
    cooldown_seconds: float
    warm_up_seconds: float
    partitions: int
    kafka: str | None = None

    @property
    def seconds(self) -> float:
        """How long the load lasts."""
        return parse_curve(self.curve).duration_seconds

    def json(self) -> str:
        """What makes it this contest and no other."""
        own = replace(self, script=Path(self.script.name), kafka="yes" if self.kafka else None)
        return _CONTEST.dump_json(own, indent=2).decode()


@dataclass(frozen=True)
class Contestant:
    """Who scales."""

    name: str
    policy: str
    allocated: bool = False  # by Spark's dynamic allocation
    nodes: str = "all"  # or "min", "max": as many, always

    @property
    def folder(self) -> str:
        """A name for its files."""
        return re.sub(r"[^\w.=-]+", "-", self.name).strip("-")

    def bounds(self, given: Bounds) -> Bounds:
        """Between how many nodes it may choose."""
        fixed = {"min": given.min_nodes, "max": given.max_nodes}.get(self.nodes)
        return given if fixed is None else Bounds(fixed, fixed)


@dataclass(frozen=True)
class Result:
    """What a run brought, second by second from the load's begin."""

    contestant: str
    number: int
    load: list[float] = field(default_factory=list)
    throughput: list[float] = field(default_factory=list)
    lag: list[float] = field(default_factory=list)
    nodes: list[float] = field(default_factory=list)
    instances: list[float] = field(default_factory=list)
    work: list[tuple[float, float]] = field(default_factory=list)  # per window: load, cores that nodes used
    startups: list[float] = field(default_factory=list)  # seconds from ordering a node to its executors
    changes: int = 0
    failed: int = 0
    failure: str = ""  # why it did not run

    @property
    def series(self) -> Series:
        """For judging and drawing."""
        columns = (self.load, self.throughput, self.lag, self.nodes, self.instances)
        return Series(1.0, *(np.array(column, dtype=np.float64) for column in columns))

    def line(self) -> str:
        """In a few words."""
        if self.failure:
            return f"did not run: {self.failure}"
        return (
            f"{sum(self.nodes):,.0f} node-seconds, p99 lag {np.percentile(self.lag, 99):.1f} s, "
            f"{self.changes} changes" + (f", {self.failed} failed" if self.failed else "")
        )

    def json(self) -> bytes:
        """To keep it."""
        return _RESULT.dump_json(self)


_CONTEST = TypeAdapter(Contest)
_RESULT = TypeAdapter(Result)


def read_result(path: Path) -> Result:
    """Read what a run left."""
    try:
        return _RESULT.validate_json(path.read_bytes())
    except (OSError, ValidationError):
        raise FileError(f"{path}: is no result of a trial; delete it, and it is made again") from None


def contestant(name: str) -> Contestant:
    """Who is meant by a name: one of the peers, or a policy."""
    if name == "spark-dra":
        return Contestant(name, "static", allocated=True)
    if name in PEERS:
        return Contestant(name, "static", nodes="min" if name == "static-min" else "max")
    return Contestant(name, name)


def run_one(
    contest: Contest, one: Contestant, number: int, folder: Path, say: Callable[[str], None]
) -> Result:
    """Run the application once, on a fresh cluster; what cannot run is a result too."""
    try:
        with _input(contest) as sent:
            return _run(contest, one, number, _order(contest, one, folder, sent), sent, say)
    except UserError:
        raise
    except RheostatError as error:
        return Result(one.name, number, failure=str(error))


def _input(contest: Contest) -> AbstractContextManager[Feed | None]:
    if contest.kafka is None:
        return nullcontext()
    return feed(contest.kafka, contest.curve, contest.seed, contest.partitions)


def _order(contest: Contest, one: Contestant, folder: Path, sent: Feed | None) -> Order:
    own = ("--topic", sent.topic) if sent else (contest.curve, "--partitions", str(contest.partitions))
    return Order(
        name=contest.app if contest.app.isidentifier() else Path(contest.app).stem,
        script=contest.script,
        policy=run.paced(build(one.policy), contest.period_seconds),
        policy_text=one.name,
        folder=folder,
        arguments=(*own, "--seed", str(contest.seed)),
        mode=contest.mode,
        kind=contest.node,
        bounds=one.bounds(contest.nodes),
        guards=Guards(
            cooldown_seconds=contest.cooldown_seconds, changes_per_hour=0, rescale_above=run.RESCALE_ABOVE
        ),
        trigger_seconds=contest.trigger_seconds,
        kafka=contest.kafka,
        allocated=one.allocated,
        seed=contest.seed,
        settings=_allocation(contest) if one.allocated else {},
        facts={"curve": contest.curve, "seed": contest.seed},
    )


def _allocation(contest: Contest) -> dict[str, str]:
    """Spark's dynamic allocation with its defaults; without shuffle tracking it does not start here."""
    low, high = (n * contest.node.executors for n in (contest.nodes.min_nodes, contest.nodes.max_nodes))
    return {
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.minExecutors": str(low),
        "spark.dynamicAllocation.initialExecutors": str(low),
        "spark.dynamicAllocation.maxExecutors": str(high),
        "spark.rheostat.warmUp": "false",
    }


def _run(
    contest: Contest,
    one: Contestant,
    number: int,
    order: Order,
    sent: Feed | None,
    say: Callable[[str], None],
) -> Result:
    books: list[_Books] = []

    def tick() -> None:
        for book in books:
            book.write(say)

    turns: list[Turn] = []
    with started(order, say, tick) as running:
        if sent:
            sent.begin()
        now = running.clock.now()
        with _Books(running, now + contest.seconds) as book:
            books.append(book)
            for turn in running.turns(now + contest.seconds):
                turns.append(turn)
        return _judged(contest, one.name, number, book, turns, from_topic=sent is not None)


class _Books:
    """Notes what a run does and what it pays for, also while its controller waits for a node."""

    def __init__(self, running: Running, ends_at: float) -> None:
        self.engine: SparkEngine = running.engine
        self.ends_at, self._clock = ends_at, running.clock
        self.paid: list[tuple[float, int, int]] = []  # when: nodes, nodes with executors that are ready
        self.instances: list[tuple[float, float]] = []
        self.done: list[tuple[float, float]] = []
        self._seen: dict[str, int] = {}
        self._over = Event()
        self._thread = Thread(target=self._bill, name="bill", daemon=True)

    def __enter__(self) -> "_Books":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.write(lambda _: None)
        self._over.set()
        self._thread.join()

    def _bill(self) -> None:
        machines = self.engine.machines
        while not self._over.wait(BILL_SECONDS):
            hosts = [machines.of(one) for one in list(self.engine.monitor.executors) if one["ready"]]
            serving = sum(hosts.count(name) >= machines.kind.executors for name in set(hosts))
            self.paid.append((self._clock.now(), len(machines.names()), serving))

    def write(self, say: Callable[[str], None]) -> None:
        """Note the batches that ended; of a graph, those of the query that reads the load."""
        now, monitor = self._clock.now(), self.engine.monitor
        if not self.engine.doing:
            self.engine.poll()
        first = next(iter(monitor.queries))
        for batch in monitor.recent:
            if batch.query == first and batch.number > self._seen.get(first, -1):
                self._seen[first] = batch.number
                before = self.done[-1][1] if self.done else 0.0
                if not self.done:
                    self.done.append((batch.started, 0.0))
                self.done.append((batch.finished, before + batch.input_rows))
        self.instances.append((now, float(self.engine.configuration.instances)))
        seen = monitor.peek(now, self.engine.topology)
        behind = "" if seen.lag_seconds is None else f", lag {seen.lag_seconds:.1f} s"
        say(f"{max(0.0, self.ends_at - now):.0f} s left, {self.engine.configuration.nodes} nodes{behind}")

    def arrivals(self) -> list[tuple[float, float]]:
        """What a topic was offered by when."""
        return next(iter(self.engine.monitor.queries.values())).ledger.arrivals


def _judged(
    contest: Contest, name: str, number: int, book: _Books, turns: list[Turn], *, from_topic: bool
) -> Result:
    """From what was noted to a result: the load as it was offered, what was done of it, and when."""
    if len(book.done) < 3:
        raise RheostatError("no batch ended")
    done = Count.of(book.done)
    if from_topic:
        arrived = Count.of(book.arrivals())
        begins = float(arrived.at[np.argmax(arrived.rows > arrived.rows[0])])
    else:
        begins = float(done.at[0])
        arrived = Count.of_curve(parse_curve(contest.curve), contest.seed, begins)
    times = begins + np.arange(contest.warm_up_seconds, contest.seconds) + 1.0
    paid_at, paid, serving = np.array(book.paid, dtype=np.float64).T
    return Result(
        contestant=name,
        number=number,
        load=_listed(rate(times, arrived)),
        throughput=_listed(rate(times, done)),
        lag=_listed(lag(times, arrived, done, in_steps=contest.mode != "realtime")),
        nodes=_listed(_latest(times, paid_at, paid)),
        instances=_listed(_latest(times, *np.array(book.instances).T)),
        work=[pair for turn in turns if (pair := _work(turn, contest.node))],
        startups=_startups(paid_at, paid, serving),
        changes=sum(turn.outcome.status is Status.APPLIED for turn in turns),
        failed=sum(turn.outcome.status is Status.FAILED for turn in turns),
    )


def _listed(values: Floats) -> list[float]:
    return [round(float(value), 3) for value in values]


def _latest(times: Floats, at: Floats, values: Floats) -> Floats:
    """The value that held at each moment."""
    return np.asarray(values[np.maximum(0, np.searchsorted(at, times, side="right") - 1)])


def _work(turn: Turn, kind: NodeKind) -> tuple[float, float] | None:
    """The load and the cores that all nodes used in a window."""
    load, nodes = turn.observation.total_load, turn.observation.nodes
    used = [node.cpu for node in nodes if node.cpu is not None]
    if load is None or not nodes or len(used) < len(nodes):
        return None
    return load, sum(used) * kind.cores


def _startups(at: Floats, paid: Floats, serving: Floats) -> list[float]:
    """For every rise of the nodes that are paid for, the seconds until as many serve."""
    found = []
    for index in np.flatnonzero(np.diff(paid) > 0) + 1:
        ready = np.flatnonzero((serving[index:] >= paid[index]) | (paid[index:] < paid[index]))
        if ready.size and paid[index + ready[0]] >= paid[index]:
            found.append(round(float(at[index + ready[0]] - at[index]), 2))
    return found
