"""One run of a trial: an application under a load, scaled by a policy, by Spark itself, or not at all."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread

import numpy as np

from rheostat.analyze.flow import Count, Floats, lag, rate
from rheostat.cli import run
from rheostat.cli.contest import Contest, Contestant, Result
from rheostat.cli.feed import Feed, feed
from rheostat.cli.running import Order, Running, started
from rheostat.control.guards import Guards
from rheostat.control.loop import Turn
from rheostat.engines.spark import rate_source
from rheostat.engines.spark.engine import SparkEngine
from rheostat.model.configuration import NodeKind
from rheostat.model.decision import Status
from rheostat.model.errors import RheostatError, UserError
from rheostat.policies.registry import build
from rheostat.workloads import parse_curve

SENT_SECONDS = 30.0  # for the first row to reach its topic
BILL_SECONDS = 0.25


def run_one(
    contest: Contest, one: Contestant, number: int, folder: Path, say: Callable[[str], None]
) -> Result:
    """Run the application once, on a fresh cluster; what cannot run is a result too."""
    try:
        with _input(contest) as sent:
            return _run(contest, one, number, _order(contest, one, folder, sent), sent, say)
    except RheostatError as error:
        return Result(one.name, number, failure=str(error), refused=isinstance(error, UserError))


def _input(contest: Contest) -> AbstractContextManager[Feed | None]:
    if contest.kafka is None:
        return nullcontext()
    return feed(contest.kafka, contest.load, contest.seed, contest.partitions)


def _order(contest: Contest, one: Contestant, folder: Path, sent: Feed | None) -> Order:
    own = ("--topic", sent.topic) if sent else (contest.load, "--partitions", str(contest.partitions))
    return Order(
        name=Path(contest.app).stem,
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
        settings={**contest.settings, **(_allocation(contest) if one.allocated else {}), **one.settings},
        facts={"curve": contest.load, "seed": contest.seed},
    )


def _allocation(contest: Contest) -> dict[str, str]:
    """Spark's dynamic allocation with its defaults; without shuffle tracking it does not start here."""
    if contest.node.executors > 1:
        raise UserError("spark-dra would spread the executors of a node over others: give it executors=1")
    low, high = contest.nodes.min_nodes, contest.nodes.max_nodes
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
        if len(running.engine.topology.sources) > 1:
            raise UserError(f"{contest.app} has several sources: a trial counts the rows of one")
        if sent:
            sent.begin()
        with _Books(running, contest) as book:
            books.append(book)
            if sent:
                book.wait_for_arrivals()
            book.ends_at = running.clock.now() + contest.seconds
            turns += running.turns(book.ends_at)
        if sent:
            sent.check()
        return _judged(contest, one.name, number, book, turns)


class _Books:
    """Notes what a run does and what it pays for, also while its controller waits for a node."""

    def __init__(self, running: Running, contest: Contest) -> None:
        self.engine: SparkEngine = running.engine
        self.contest, self.ends_at, self._clock = contest, float("inf"), running.clock
        self.began_at, self.folder = running.clock.began_at, running.order.folder
        self.paid: list[tuple[float, int, int]] = []  # when: nodes, nodes with executors that are ready
        self.instances: list[tuple[float, float]] = []
        self.done: list[tuple[float, float]] = []  # when: where the source of what is done stands
        self.arrived: dict[float, float] = {}  # where a topic tells
        self.missed = ""  # what was not heard of, so that the counts are wrong
        self._last = -1
        self._over = Event()
        self._thread = Thread(target=self._bill, name="bill", daemon=True)

    def __enter__(self) -> "_Books":
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._over.set()
        self._thread.join()
        if kind is None:
            self.write(lambda _: None)

    def wait_for_arrivals(self) -> None:
        """Until the topic has its first rows."""
        until = self._clock.now() + SENT_SECONDS
        while len(set(self.arrived.values())) < 2:
            if self._clock.now() > until:
                raise RheostatError(f"no row reached its topic within {SENT_SECONDS:g} s")
            self._clock.sleep(0.2)

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
        query = next(iter(monitor.queries.values()))
        for batch in monitor.recent:
            if batch.query == query.name and batch.number > self._last:
                if 0 <= self._last < batch.number - 1:
                    self.missed = f"batch {batch.number - 1} was not heard of: its driver died"
                before = self.done[-1][1] if self.done else 0.0
                after = before if batch.end is None else batch.end
                self.done += [(batch.started, before), (batch.finished, after)]
                self._last = batch.number
        self.arrived |= dict(query.ledger.arrivals)
        self.instances.append((now, float(self.engine.configuration.instances)))
        seen = monitor.peek(now, self.engine.topology)
        behind = "" if seen.lag_seconds is None else f", lag {seen.lag_seconds:.1f} s"
        say(f"{max(0.0, self.ends_at - now):.0f} s left, {self.engine.configuration.nodes} nodes{behind}")

    def counts(self) -> tuple[Count, Count]:
        """Rows that arrived, and rows that are done, both as the load counts them."""
        done = Count.of(self.done)
        if self.contest.kafka:
            arrived = Count.of(sorted(self.arrived.items()))
            return replace(arrived, rows=arrived.rows - arrived.rows[0]), done
        ticks = Count.of_curve(
            parse_curve(self.contest.load), self.contest.seed, self._source_began(), self.contest.partitions
        )
        per_second = self.contest.partitions  # the rate source counts seconds, of so many ticks
        read = np.minimum(done.rows * per_second, len(ticks.rows) - 1).astype(int)
        return ticks, Count(done.at, ticks.rows[read])

    def _source_began(self) -> float:
        """When the rate source began to count, as it noted in its checkpoint."""
        noted = rate_source.began(self.folder / "checkpoint")
        if noted is None:
            raise RheostatError("the checkpoint does not tell when the load began")
        return noted - self.began_at


def _judged(contest: Contest, name: str, number: int, book: _Books, turns: list[Turn]) -> Result:
    """From what was noted to a result: the load as it was offered, what was done of it, and when."""
    if len(book.done) < 4 or not book.paid:
        raise RheostatError("too few batches ended")
    if book.missed:
        raise RheostatError(book.missed)
    arrived, done = book.counts()
    begins = float(arrived.at[np.argmax(arrived.rows > 0) - 1])
    times = begins + np.arange(contest.warm_up_seconds, contest.seconds) + 1.0
    if contest.mode == "realtime":  # what is done is known when a batch ends
        times = times[times <= done.at[-1]]
    if not len(times):
        raise RheostatError("no batch ended after the warm-up")
    paid_at, paid, serving = np.array(book.paid, dtype=np.float64).T
    return Result(
        contestant=name,
        number=number,
        load=_listed(rate(times, arrived)),
        throughput=_listed(rate(times, done)),
        lag=_listed(lag(times, arrived, done, in_steps=contest.mode != "realtime")),
        nodes=_listed(_latest(times, paid_at, paid)),
        instances=_listed(_latest(times, *np.array(book.instances).T)),
        work=[
            pair
            for turn in turns
            if turn.observation.start >= times[0] and (pair := _work(turn, contest.node))
        ],
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
