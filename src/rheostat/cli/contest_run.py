"""One run of a trial: an application under a load, scaled by a policy, by Spark itself, or not at all."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from threading import Event, Thread

from rheostat.cli import watching
from rheostat.cli.contest import Contest, Contestant, Result
from rheostat.cli.contest_judging import Notes, judged
from rheostat.cli.feed import Feed, feed
from rheostat.cli.running import Order, Running, started
from rheostat.control.guards import Guards
from rheostat.control.loop import Turn
from rheostat.engines.spark import rate_source
from rheostat.engines.spark.engine import SparkEngine
from rheostat.engines.spark.spec import SPREAD_STATE, WARM_UP
from rheostat.model.errors import RheostatError, UserError
from rheostat.policies.registry import build

SENT_SECONDS = 30.0  # for the first row to reach its topic
LAST_SECONDS = 60.0  # for the batch to end that ran when the load was over; what is done later is not done
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
        policy=watching.paced(build(one.policy), contest.period_seconds),
        policy_text=one.name,
        folder=folder,
        arguments=(*own, "--seed", str(contest.seed)),
        mode=contest.mode,
        kind=contest.node,
        bounds=one.bounds(contest.nodes),
        guards=Guards(
            cooldown_seconds=contest.cooldown_seconds,
            changes_per_hour=0,
            rescale_above=watching.RESCALE_ABOVE,
        ),
        trigger_seconds=contest.trigger_seconds,
        kafka=contest.kafka,
        allocated=one.allocated,
        seed=contest.seed,
        settings={**contest.settings, **(_allocation(contest) if one.allocated else {}), **one.settings},
        facts={"curve": contest.load, "seed": contest.seed},
    )


def _allocation(contest: Contest) -> dict[str, str]:
    """Spark's dynamic allocation with its defaults; what Rheostat adds for itself is off."""
    if contest.node.executors > 1:
        raise UserError("spark-dra would spread the executors of a node over others: give it executors=1")
    low, high = contest.nodes.min_nodes, contest.nodes.max_nodes
    return {
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.minExecutors": str(low),
        "spark.dynamicAllocation.initialExecutors": str(low),
        "spark.dynamicAllocation.maxExecutors": str(high),
        "spark.decommission.enabled": "false",
        WARM_UP: "false",
        SPREAD_STATE: "false",
    }


def _run(
    contest: Contest,
    one: Contestant,
    number: int,
    order: Order,
    sent: Feed | None,
    say: Callable[[str], None],
) -> Result:
    books: list[Books] = []

    def tick() -> None:
        for book in books:
            book.write(say)

    turns: list[Turn] = []
    with started(order, say, tick) as running:
        if len(running.engine.topology.sources) > 1:
            raise UserError(f"{contest.app} has several sources: a trial counts the rows of one")
        if len(running.engine.monitor.queries) > 1:
            raise UserError(f"{contest.app} is a graph of queries: a trial counts the rows of one")
        if sent:
            sent.begin()
        with Books(running, contest) as book:
            books.append(book)
            if sent:
                book.wait_for_arrivals()
            book.ends_at = running.clock.now() + contest.seconds - (contest.silent_seconds if sent else 0.0)
            turns += running.turns(book.ends_at)
            book.wait_for_the_end()
        if sent:
            sent.check()
        return judged(contest, one, number, book.notes, turns)


class Books:
    """Takes notes of a run, also while its controller waits for a node."""

    def __init__(self, running: Running, contest: Contest) -> None:
        self.engine: SparkEngine = running.engine
        self.contest, self.ends_at, self._clock = contest, float("inf"), running.clock
        self.notes = Notes()
        self._began_at, self._folder = running.began_at, running.order.folder
        self._last = -1
        self._over = Event()
        self._thread = Thread(target=self._bill, name="bill", daemon=True)

    def __enter__(self) -> "Books":
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._over.set()
        self._thread.join()
        if kind is None:
            self.write(lambda _: None)

    def wait_for_arrivals(self) -> None:
        """Until the topic has its first rows."""
        until = self._clock.now() + SENT_SECONDS + self.contest.silent_seconds
        while len(set(self.notes.arrived.values())) < 2:
            if self._clock.now() > until:
                raise RheostatError(f"no row reached its topic within {SENT_SECONDS:g} s")
            self._clock.sleep(0.2)

    def wait_for_the_end(self) -> None:
        """Until it is known what was done up to the load's end."""
        until = self._clock.now() + LAST_SECONDS
        while self._clock.now() < until:
            begins, done = self.notes.begins(self.contest), self.notes.done
            if begins is not None and done and done[-1][0] >= begins + self.contest.seconds:
                break
            self._clock.sleep(0.2)

    def _bill(self) -> None:
        machines = self.engine.machines
        try:
            while not self._over.wait(BILL_SECONDS):
                hosts = [machines.of(one) for one in list(self.engine.monitor.executors) if one["ready"]]
                serving = sum(hosts.count(name) >= machines.kind.executors for name in set(hosts))
                self.notes.paid.append((self._clock.now(), len(machines.names()), serving))
        except Exception as error:  # nobody else hears of it
            self.notes.missed = f"the nodes were not counted to the end: {error!r}"

    def write(self, say: Callable[[str], None]) -> None:
        """Note the batches that ended."""
        now, monitor, notes = self._clock.now(), self.engine.monitor, self.notes
        if not self.engine.doing:
            self.engine.poll()
        query = next(iter(monitor.queries.values()))
        for batch in monitor.recent:
            if batch.number > self._last and not batch.idle:  # an idle one has the number of the next
                if 0 <= self._last < batch.number - 1:
                    notes.missed = f"batch {batch.number - 1} was not heard of: its driver died"
                before = notes.done[-1][1] if notes.done else 0.0
                after = before if batch.end is None else batch.end
                notes.done += [(batch.started, before), (batch.finished, after)]
                self._last = batch.number
        if notes.source_began is None and not self.contest.kafka:
            noted = rate_source.began(self._folder / "checkpoint")
            notes.source_began = None if noted is None else noted - self._began_at
        notes.arrived |= dict(query.ledger.arrivals)
        notes.instances.append((now, float(self.engine.configuration.instances)))
        seen = monitor.peek(now, self.engine.topology)
        behind = "" if seen.lag_seconds is None else f", lag {seen.lag_seconds:.1f} s"
        say(f"{max(0.0, self.ends_at - now):.0f} s left, {self.engine.configuration.nodes} nodes{behind}")
